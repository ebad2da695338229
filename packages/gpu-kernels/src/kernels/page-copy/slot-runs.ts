/**
 * Calls `visit` for each longest run of consecutive slots, in order: neighbours are copied in one piece.
 *
 * @param visit gets the first slot, the number of slots, and the position of the first one in `slots`
 * @example [4, 5, 6, 9] gives (4, 3, 0), (9, 1, 3)
 */
export function forEachSlotRun(slots: Int32Array, visit: (firstSlot: number, numSlots: number, position: number) => void): void {
  for (let start = 0; start < slots.length; ) {
    let end = start + 1;
    while (end < slots.length && slots[end] === slots[end - 1] + 1) end++;
    visit(slots[start], end - start, start);
    start = end;
  }
}
