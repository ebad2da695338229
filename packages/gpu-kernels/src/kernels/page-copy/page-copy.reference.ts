/**
 * What the page-copy kernel computes, in plain TypeScript. All sources are read before a target is written, as if at once.
 *
 * @param pool      `[numSlots, slotBytes]` bytes, changed in place
 * @param slotBytes bytes of one slot
 */
export function copyPagesReference(
  pool: Uint8Array,
  slotBytes: number,
  sources: Int32Array,
  targets: Int32Array,
  count: number,
): void {
  const before = pool.slice();
  for (let i = 0; i < count; i++) {
    pool.set(before.subarray(sources[i] * slotBytes, (sources[i] + 1) * slotBytes), targets[i] * slotBytes);
  }
}

/** What clearing computes: the named slots are zero. */
export function clearPagesReference(pool: Uint8Array, slotBytes: number, slots: Int32Array, count: number): void {
  for (let i = 0; i < count; i++) pool.fill(0, slots[i] * slotBytes, (slots[i] + 1) * slotBytes);
}
