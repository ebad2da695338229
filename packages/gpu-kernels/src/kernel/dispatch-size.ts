/**
 * Lays a row of workgroups over two dimensions, because one dimension holds 65,535 by default.
 * Fewer than `ceil(numWorkgroups / maxPerDimension)` of the launched workgroups are surplus; the kernel returns in them.
 *
 * @param numWorkgroups   workgroups wanted, >= 0
 * @param maxPerDimension the device's `maxComputeWorkgroupsPerDimension`
 * @returns `[x, y, 1]` with `x * y >= numWorkgroups`, or undefined when two dimensions do not hold them
 * @example foldWorkgroups(65_536, 65_535)   // [32_768, 2, 1]
 */
export function foldWorkgroups(numWorkgroups: number, maxPerDimension: number): [number, number, number] | undefined {
  if (numWorkgroups <= maxPerDimension) return [numWorkgroups, numWorkgroups === 0 ? 0 : 1, 1];
  const y = Math.ceil(numWorkgroups / maxPerDimension);
  if (y > maxPerDimension) return undefined;
  return [Math.ceil(numWorkgroups / y), y, 1];
}
