/** Bytes as they came, to be taken in other portions. */
export class ByteQueue {
  #chunks: Uint8Array[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    this.#chunks.push(chunk);
    this.#length += chunk.length;
  }

  /** The first bytes, or null while there are fewer. A view: valid as long as the chunks it came in. */
  peek(length: number): Uint8Array | null {
    if (this.#length < length) return null;
    if (length === 0) return new Uint8Array(0);
    if (this.#chunks[0].length < length) this.#gather(length);
    return this.#chunks[0].subarray(0, length);
  }

  /** As `peek`, and takes them out. */
  take(length: number): Uint8Array | null {
    const bytes = this.peek(length);
    if (bytes === null || length === 0) return bytes;
    const rest = this.#chunks[0].subarray(length);
    if (rest.length > 0) this.#chunks[0] = rest;
    else this.#chunks.shift();
    this.#length -= length;
    return bytes;
  }

  /** Makes the first chunk as long as is asked for, and no longer. */
  #gather(length: number): void {
    const first = new Uint8Array(length);
    let filled = 0;
    let taken = 0;
    while (filled < length) {
      const chunk = this.#chunks[taken];
      const part = chunk.subarray(0, length - filled);
      first.set(part, filled);
      filled += part.length;
      if (part.length < chunk.length) this.#chunks[taken] = chunk.subarray(part.length);
      else taken++;
    }
    this.#chunks = [first, ...this.#chunks.slice(taken)];
  }
}
