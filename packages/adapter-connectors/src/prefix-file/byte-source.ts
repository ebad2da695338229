/** Bytes, whatever they come out of: a file of a browser, a body of `fetch`, a stream of Node. Read once, from its beginning. */
export type ByteSource = Uint8Array | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

/** Reads a source by lengths. Holds no more of it than the pieces that a length takes. */
export class ByteReader {
  readonly #pieces: AsyncIterator<Uint8Array>;
  /** Read and not taken yet. */
  #rest: Uint8Array[] = [];
  #restBytes = 0;
  #numRead = 0;

  constructor(source: ByteSource) {
    this.#pieces = piecesOf(source);
  }

  /** Bytes taken so far. */
  get position(): number {
    return this.#numRead;
  }

  /**
   * The next bytes; fewer at the end of the source. What is not there takes no memory, however many are asked for. May be a view into what
   * the source gave.
   */
  async read(length: number): Promise<Uint8Array> {
    while (this.#restBytes < length) {
      const { done, value } = await this.#pieces.next();
      if (done) break;
      this.#rest.push(value);
      this.#restBytes += value.length;
    }
    return this.#take(Math.min(length, this.#restBytes));
  }

  /** Tells the source that nothing more will be read. */
  async cancel(): Promise<void> {
    this.#rest = [];
    this.#restBytes = 0;
    await this.#pieces.return?.();
  }

  #take(length: number): Uint8Array {
    this.#restBytes -= length;
    this.#numRead += length;
    const first = this.#rest[0];
    if (first !== undefined && first.length >= length) {
      this.#rest[0] = first.subarray(length);
      return first.subarray(0, length);
    }
    const taken = new Uint8Array(length);
    let at = 0;
    while (at < length) {
      const piece = this.#rest[0];
      const part = piece.subarray(0, length - at);
      taken.set(part, at);
      at += part.length;
      if (part.length < piece.length) this.#rest[0] = piece.subarray(part.length);
      else this.#rest.shift();
    }
    return taken;
  }
}

function piecesOf(source: ByteSource): AsyncIterator<Uint8Array> {
  if (source instanceof Uint8Array) return once(source);
  if (source instanceof Blob) return piecesOf(source.stream());
  if (Symbol.asyncIterator in source) return source[Symbol.asyncIterator]();
  return streamed(source);
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** Streams of some browsers cannot be iterated. */
async function* streamed(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
