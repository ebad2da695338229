/**
 * Grains that `slots` slots of a pool group take. Each pool is rounded up by itself.
 *
 * @param slotSizes bytes of a slot in each pool of the group
 * @param granularity bytes of a grain, a power of two
 */
export function grainsFor(slots: number, slotSizes: readonly number[], granularity: number): number {
  let grains = 0;
  for (const slotBytes of slotSizes) grains += Math.ceil((slots * slotBytes) / granularity);
  return grains;
}

/**
 * The most slots that take no more than `grains`. Found by search: rounding each pool up makes every closed guess wrong somewhere.
 *
 * @param grains >= 0
 */
export function maxSlotsIn(grains: number, slotSizes: readonly number[], granularity: number): number {
  const pageBytes = slotSizes.reduce((sum, slotBytes) => sum + slotBytes, 0);
  let fits = 0;
  let tooMany = Math.floor((grains * granularity) / pageBytes) + 1;
  while (tooMany - fits > 1) {
    const middle = fits + Math.floor((tooMany - fits) / 2);
    if (grainsFor(middle, slotSizes, granularity) <= grains) fits = middle;
    else tooMany = middle;
  }
  return fits;
}
