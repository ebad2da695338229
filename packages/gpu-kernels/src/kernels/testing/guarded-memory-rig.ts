import { readBytes, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';

/** Device memory for tests in which everything that nobody owns is NaN: whoever reads it shows it, whoever writes it is found. */

/** Two halves of NaN in f16, and NaN in f32. */
const NAN_WORD = 0x7fff7fff;

/** Numbers in [-1, 1) that are the same in every run. */
export function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  };
}

/** Integers in [0, n) from such numbers. */
export function randomBelow(random: () => number): (n: number) => number {
  return (n) => Math.floor(((random() + 1) / 2) * n);
}

/**
 * Ranges of one length in a buffer, at an odd offset and with gaps between them: rows of tokens, or pages of a pool.
 * A range is owned once it was set or is declared to be written.
 */
export class GuardedMemory {
  readonly offsetWords = 7;
  readonly strideWords: number;
  /** What the buffer begins with; gone once it is there. */
  #content: Uint32Array<ArrayBuffer> | undefined;
  #buffer: GPUBuffer | undefined;
  readonly #device: GPUDevice;
  readonly #rangeWords: number;
  readonly #numRanges: number;
  readonly #owned = new Set<number>();

  constructor(device: GPUDevice, numRanges: number, rangeWords: number, gapWords = 3) {
    this.#device = device;
    this.#rangeWords = rangeWords;
    this.#numRanges = numRanges;
    this.strideWords = rangeWords + gapWords;
    this.#content = new Uint32Array(this.offsetWords + numRanges * this.strideWords).fill(NAN_WORD);
  }

  get buffer(): GPUBuffer {
    if (this.#content) this.#buffer = storageBuffer(this.#device, this.#content);
    this.#content = undefined;
    return this.#buffer as GPUBuffer;
  }

  /** As rows of tokens. */
  get rows() {
    return { buffer: this.buffer, offsetWords: this.offsetWords, strideWords: this.strideWords };
  }

  /** As pages of a pool. */
  get pages() {
    return { pool: this.buffer, baseWords: this.offsetWords, strideWords: this.strideWords };
  }

  set(range: number, content: ArrayBufferView<ArrayBuffer>): void {
    this.own(range);
    if (!this.#content) this.#device.queue.writeBuffer(this.buffer, 4 * this.#at(range), content);
    else {
      const bytes = new Uint8Array(content.buffer, content.byteOffset, content.byteLength);
      new Uint8Array(this.#content.buffer).set(bytes, 4 * this.#at(range));
    }
  }

  own(...ranges: number[]): void {
    for (const range of ranges) this.#owned.add(range);
  }

  /**
   * The words of every range that is owned, once all work has landed.
   * @throws when a word outside of them was written
   */
  async read(): Promise<Map<number, Uint32Array>> {
    const words = new Uint32Array(await readBytes(this.#device, this.buffer));
    const ranges = new Map<number, Uint32Array>();
    for (let range = 0; range < this.#numRanges; range++) {
      if (!this.#owned.has(range)) continue;
      const begin = this.#at(range);
      ranges.set(range, words.slice(begin, begin + this.#rangeWords));
      words.fill(NAN_WORD, begin, begin + this.#rangeWords);
    }
    const stray = words.findIndex((word) => word !== NAN_WORD);
    if (stray >= 0) throw new Error(`word ${stray} was written, which nobody owns`);
    return ranges;
  }

  destroy(): void {
    this.#buffer?.destroy();
  }

  #at(range: number): number {
    return this.offsetWords + range * this.strideWords;
  }
}

/** Largest difference between two results, relative to the largest value of the second. NaN anywhere gives NaN. */
export function relativeError(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  let error = 0;
  let scale = 0;
  for (let i = 0; i < expected.length; i++) {
    const difference = Math.abs(actual[i] - expected[i]);
    error = Number.isNaN(difference) ? Number.NaN : Math.max(error, difference);
    scale = Math.max(scale, Math.abs(expected[i]));
  }
  return scale === 0 ? error : error / scale;
}
