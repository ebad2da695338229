/** The tokens of a sequence, growing at its end. */
export class TokenList {
  #values: Uint32Array;
  #length: number;

  constructor(tokens: ArrayLike<number>) {
    this.#values = Uint32Array.from(tokens);
    this.#length = tokens.length;
  }

  get length(): number {
    return this.#length;
  }

  /** All of them: a view until the next `push`. */
  get all(): Uint32Array {
    return this.#values.subarray(0, this.#length);
  }

  push(token: number): void {
    if (this.#length === this.#values.length) {
      const grown = new Uint32Array(Math.max(16, 2 * this.#length));
      grown.set(this.#values);
      this.#values = grown;
    }
    this.#values[this.#length++] = token;
  }

  /** Tokens `[begin, end)`, a copy. */
  slice(begin: number, end: number): Uint32Array {
    return this.#values.slice(begin, Math.min(end, this.#length));
  }
}
