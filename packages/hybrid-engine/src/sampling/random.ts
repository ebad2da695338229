/**
 * A small deterministic generator of random numbers (xoshiro128**, seeded through SplitMix32): the same seed gives the same
 * answer on every platform. Not for secrets.
 */
export class Random {
  readonly #state = new Uint32Array(4);

  /** @param seed a whole number; its lower 32 bits count */
  constructor(seed: number) {
    let counter = seed >>> 0;
    for (let i = 0; i < 4; i++) {
      counter = (counter + 0x9e3779b9) >>> 0;
      let word = counter;
      word = Math.imul(word ^ (word >>> 16), 0x85ebca6b);
      word = Math.imul(word ^ (word >>> 13), 0xc2b2ae35);
      this.#state[i] = word ^ (word >>> 16);
    }
  }

  /** Evenly distributed over the multiples of 2^-32 in [0, 1). */
  next(): number {
    const state = this.#state;
    const word = Math.imul(rotateLeft(Math.imul(state[1], 5), 7), 9) >>> 0;
    const shifted = state[1] << 9;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotateLeft(state[3], 11);
    return word / 2 ** 32;
  }
}

function rotateLeft(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}
