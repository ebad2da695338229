/** Keys and values of one layer, `[numTokens, width]`, in arrays that grow by doubling. */
export class KeyValueHistory {
  /** Values of one row. */
  readonly width: number;
  /** Rows behind the last token are not set yet. */
  keys: Float32Array;
  values: Float32Array;
  #numTokens = 0;

  constructor(width: number) {
    this.width = width;
    this.keys = new Float32Array(64 * width);
    this.values = new Float32Array(64 * width);
  }

  /** Takes in the next token's rows, `[width]` each. */
  append(key: Float32Array, value: Float32Array): void {
    const begin = this.#numTokens * this.width;
    if (begin === this.keys.length) {
      this.keys = grown(this.keys);
      this.values = grown(this.values);
    }
    this.keys.set(key, begin);
    this.values.set(value, begin);
    this.#numTokens++;
  }

  /** One that goes on alone from here. */
  clone(): KeyValueHistory {
    const copy = new KeyValueHistory(this.width);
    copy.keys = this.keys.slice();
    copy.values = this.values.slice();
    copy.#numTokens = this.#numTokens;
    return copy;
  }
}

function grown(values: Float32Array): Float32Array {
  const larger = new Float32Array(values.length * 2);
  larger.set(values);
  return larger;
}
