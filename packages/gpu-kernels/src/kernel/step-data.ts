/**
 * Data that travels with a step: tables and parameters, all of them in one upload. Valid as a binding (`uniform` or
 * `read-only-storage`) and as a copy source in the step that made it, and nowhere else.
 */
export class StepData {
  /** The step that made it. */
  readonly step: object;
  /** Bytes from the start of the step's upload, a multiple of the device's offset alignments. */
  readonly offset: number;
  /** Bytes, a multiple of 4. */
  readonly size: number;

  constructor(step: object, offset: number, size: number) {
    this.step = step;
    this.offset = offset;
    this.size = size;
  }
}

/** Bytes gathered for one upload, each piece at an aligned offset. The memory is kept and reused by `reset`. */
export class UploadStaging {
  readonly #alignment: number;
  #bytes = new Uint8Array(4096);
  #length = 0;

  /** @param alignment bytes, a power of two: the larger of the two offset alignments of the device */
  constructor(alignment: number) {
    this.#alignment = alignment;
  }

  /** Bytes in use, from the start. A multiple of 4. */
  get length(): number {
    return this.#length;
  }

  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#bytes;
  }

  /** Copies `data` in, and zeros up to a multiple of 4 bytes (at least 4). */
  append(data: ArrayBufferView): { offset: number; size: number } {
    const offset = Math.ceil(this.#length / this.#alignment) * this.#alignment;
    const size = Math.max(4, Math.ceil(data.byteLength / 4) * 4);
    this.#reserve(offset + size);
    const source = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    this.#bytes.set(source, offset);
    this.#bytes.fill(0, offset + data.byteLength, offset + size);
    this.#length = offset + size;
    return { offset, size };
  }

  reset(): void {
    this.#length = 0;
  }

  #reserve(length: number): void {
    if (length <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(length, this.#bytes.length * 2));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}
