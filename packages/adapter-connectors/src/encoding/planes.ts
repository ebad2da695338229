/** Bits of a byte above which a plane is as good as random: deflate would cost time and gain nothing. */
const DENSE_BITS = 7.6;

/**
 * Bytes of numbers sorted by their place in the number: all first bytes, then all second ones, and so on. Exponents of neighbours look alike,
 * the low bytes of mantissas look like noise; side by side the one hides the other.
 *
 * @param elementBytes divides `bytes.length`
 * @returns `elementBytes` planes of equal length, views into one array of the caller's; of 1 byte: `bytes` itself
 */
export function splitPlanes(bytes: Uint8Array, elementBytes: number): Uint8Array[] {
  if (elementBytes === 1) return [bytes];
  const planeBytes = bytes.length / elementBytes;
  const sorted = new Uint8Array(bytes.length);
  for (let plane = 0, at = 0; plane < elementBytes; plane++)
    for (let i = plane; i < bytes.length; i += elementBytes) sorted[at++] = bytes[i];
  return Array.from({ length: elementBytes }, (_, plane) => sorted.subarray(plane * planeBytes, (plane + 1) * planeBytes));
}

/** What `splitPlanes` was given. */
export function joinPlanes(planes: readonly Uint8Array[]): Uint8Array {
  const elementBytes = planes.length;
  const bytes = new Uint8Array(elementBytes * planes[0].length);
  planes.forEach((plane, offset) => {
    for (let i = 0, at = offset; i < plane.length; i++, at += elementBytes) bytes[at] = plane[i];
  });
  return bytes;
}

/** Whether some bytes are worth the time of deflating them, by how often each value is among them. */
export function isCompressible(bytes: Uint8Array): boolean {
  const counts = new Uint32Array(256);
  for (let i = 0; i < bytes.length; i++) counts[bytes[i]]++;
  let bits = 0;
  for (const count of counts) if (count > 0) bits -= count * Math.log2(count / bytes.length);
  return bits < DENSE_BITS * bytes.length;
}
