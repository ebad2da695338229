import { StateError } from '@bufferwise/core-policy';

const WORD_BITS = 32;
const ALL_FREE = -1;

/**
 * Hands out the slots `0 … slots - 1` of a pool group and takes each back exactly once.
 *
 * Free slots are bits, summarised 32 to 1 until one word is left, so that the lowest free slot is found in a few steps however
 * many there are. Lowest first keeps the used slots together at the front, which is what makes a pool easy to shrink. Memory:
 * about `slots / 8` bytes. No call but the constructor and `resize` creates garbage.
 */
export class SlotAllocator {
  /** Level 0 has a bit a slot, 1 = free; a bit of the next level says whether its word has any. The last level is one word. */
  #levels: Int32Array[];
  #slots: number;
  #free: number;

  /**
   * @param slots how many there are, all free at first
   * @throws {StateError} `invalid-slot-count` when `slots` is no integer from 0 to 2^31 - 1
   */
  constructor(slots: number) {
    checkSlotCount(slots);
    this.#slots = slots;
    this.#free = slots;
    this.#levels = levelsFor(slots);
    setFree(this.#levels[0] as Int32Array, 0, slots);
    summarise(this.#levels);
  }

  /** Slots there are, free or not. */
  get slots(): number {
    return this.#slots;
  }

  /** Slots that can still be handed out. */
  get free(): number {
    return this.#free;
  }

  /**
   * Takes the `n` lowest free slots and writes their ids to `out[at … at + n)`, ascending. The caller owns them until `release`.
   *
   * @param at where in `out` to begin, default 0
   * @returns false, with nothing taken and `out` unchanged, when fewer than `n` are free
   * @throws {StateError} `invalid-slot-count` when `n` is negative or no integer, `out-too-small` when `out` cannot hold the ids
   */
  allocate(n: number, out: Int32Array, at = 0): boolean {
    if (!(n >= 0 && Number.isInteger(n))) throw invalidCount(n);
    if (!(at >= 0 && at + n <= out.length)) throw outTooSmall(n, at, out.length);
    if (n > this.#free) return false;
    this.#free -= n;
    const levels = this.#levels;
    const bits = levels[0] as Int32Array;
    const end = at + n;
    for (let next = at; next < end; ) {
      const wordIndex = lowestFreeWord(levels);
      const base = wordIndex * WORD_BITS;
      let word = bits[wordIndex] as number;
      do {
        const lowest = word & -word;
        out[next++] = base + 31 - Math.clz32(lowest);
        word ^= lowest;
      } while (word !== 0 && next < end);
      bits[wordIndex] = word;
      if (word === 0) markFull(levels, wordIndex);
    }
    return true;
  }

  /**
   * Gives one slot back.
   *
   * @throws {StateError} `unknown-slot` when there is no such slot, `slot-not-allocated` when it is free already
   */
  release(slot: number): void {
    if (!(slot >= 0 && slot < this.#slots && Number.isInteger(slot))) throw unknownSlot(slot, this.#slots);
    const levels = this.#levels;
    const bits = levels[0] as Int32Array;
    const wordIndex = slot >>> 5;
    const word = bits[wordIndex] as number;
    const bit = 1 << (slot & 31);
    if ((word & bit) !== 0) throw notAllocated(slot);
    bits[wordIndex] = word | bit;
    this.#free++;
    if (word === 0) markNotFull(levels, wordIndex);
  }

  /** Whether `slot` is out with somebody. False for an id that does not exist. */
  isAllocated(slot: number): boolean {
    if (!(slot >= 0 && slot < this.#slots && Number.isInteger(slot))) return false;
    return (((this.#levels[0] as Int32Array)[slot >>> 5] as number) & (1 << (slot & 31))) === 0;
  }

  /**
   * How many slots of `[from, slots)` are out: the ones in the way of `resize(from)`.
   *
   * @param from slot id, >= 0
   */
  numAllocatedFrom(from: number): number {
    return Math.max(0, this.#slots - from) - countFree(this.#levels[0] as Int32Array, from, this.#slots);
  }

  /**
   * Changes how many slots there are. New ones are free.
   *
   * @returns false, with nothing changed, when a slot beyond the new end is out
   * @throws {StateError} `invalid-slot-count` as in the constructor
   */
  resize(slots: number): boolean {
    checkSlotCount(slots);
    if (slots < this.#slots && this.numAllocatedFrom(slots) > 0) return false;
    const levels = levelsFor(slots);
    const bits = levels[0] as Int32Array;
    const kept = Math.min(slots, this.#slots);
    bits.set((this.#levels[0] as Int32Array).subarray(0, Math.ceil(kept / WORD_BITS)));
    clearFrom(bits, kept);
    setFree(bits, kept, slots);
    summarise(levels);
    this.#free += slots - this.#slots;
    this.#slots = slots;
    this.#levels = levels;
    return true;
  }
}

/** The word of level 0 that holds the lowest free slot; there must be one. */
function lowestFreeWord(levels: Int32Array[]): number {
  let index = 0;
  for (let level = levels.length - 1; level > 0; level--) {
    const word = (levels[level] as Int32Array)[index] as number;
    index = index * WORD_BITS + 31 - Math.clz32(word & -word);
  }
  return index;
}

/** Word `index` of level 0 has just lost its last free slot. */
function markFull(levels: Int32Array[], index: number): void {
  for (let level = 1; level < levels.length; level++) {
    const words = levels[level] as Int32Array;
    const parent = index >>> 5;
    const word = (words[parent] as number) & ~(1 << (index & 31));
    words[parent] = word;
    if (word !== 0) return;
    index = parent;
  }
}

/** Word `index` of level 0 has just got its first free slot. */
function markNotFull(levels: Int32Array[], index: number): void {
  for (let level = 1; level < levels.length; level++) {
    const words = levels[level] as Int32Array;
    const parent = index >>> 5;
    const word = words[parent] as number;
    words[parent] = word | (1 << (index & 31));
    if (word !== 0) return;
    index = parent;
  }
}

/** Zeroed levels for so many slots. */
function levelsFor(slots: number): Int32Array[] {
  const levels: Int32Array[] = [];
  let words = slots;
  do {
    words = Math.max(1, Math.ceil(words / WORD_BITS));
    levels.push(new Int32Array(words));
  } while (words > 1);
  return levels;
}

/** Sets every summary bit whose word below is not zero. */
function summarise(levels: Int32Array[]): void {
  for (let level = 1; level < levels.length; level++) {
    const below = levels[level - 1] as Int32Array;
    const words = levels[level] as Int32Array;
    for (let i = 0; i < below.length; i++) if (below[i] !== 0) words[i >>> 5] = (words[i >>> 5] as number) | (1 << (i & 31));
  }
}

/** Sets the bits [begin, end). */
function setFree(bits: Int32Array, begin: number, end: number): void {
  let slot = begin;
  for (; slot < end && slot % WORD_BITS !== 0; slot++) bits[slot >>> 5] = (bits[slot >>> 5] as number) | (1 << (slot & 31));
  const wholeWordsEnd = Math.max(slot, end - (end % WORD_BITS));
  bits.fill(ALL_FREE, slot >>> 5, wholeWordsEnd >>> 5);
  for (slot = wholeWordsEnd; slot < end; slot++) bits[slot >>> 5] = (bits[slot >>> 5] as number) | (1 << (slot & 31));
}

/** Clears what a copy of whole words brought along beyond `end`. */
function clearFrom(bits: Int32Array, end: number): void {
  if (end % WORD_BITS !== 0) bits[end >>> 5] = (bits[end >>> 5] as number) & ((1 << (end & 31)) - 1);
}

/** Set bits in [begin, end). */
function countFree(bits: Int32Array, begin: number, end: number): number {
  let count = 0;
  for (let slot = begin; slot < end; ) {
    const wordEnd = Math.min(end, slot - (slot % WORD_BITS) + WORD_BITS);
    const mask =
      (slot % WORD_BITS === 0 ? ALL_FREE : ALL_FREE << (slot & 31)) &
      (wordEnd % WORD_BITS === 0 ? ALL_FREE : (1 << (wordEnd & 31)) - 1);
    count += popCount((bits[slot >>> 5] as number) & mask);
    slot = wordEnd;
  }
  return count;
}

/** Set bits of one word, added in pairs, fours and bytes side by side. */
function popCount(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555);
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

function checkSlotCount(slots: number): void {
  if (!(Number.isInteger(slots) && slots >= 0 && slots < 2 ** 31)) throw invalidCount(slots);
}

function invalidCount(n: number): StateError {
  return new StateError('invalid-slot-count', `A number of slots must be an integer from 0 to 2^31 - 1, not ${n}.`);
}

function outTooSmall(n: number, at: number, length: number): StateError {
  return new StateError(
    'out-too-small',
    `${n} slot ids do not fit from index ${at} into an \`out\` of ${length} entries; pass a longer one.`,
  );
}

function unknownSlot(slot: number, slots: number): StateError {
  return new StateError('unknown-slot', `There is no slot ${slot} among ${slots}; release only ids that \`allocate\` wrote.`);
}

function notAllocated(slot: number): StateError {
  return new StateError('slot-not-allocated', `Slot ${slot} is free already; release each slot exactly once.`);
}
