/** Writes the wire format of protocol buffers: just what a model file needs. */
export class ProtobufWriter {
  readonly #bytes: number[] = [];

  /** A whole number from 0 on, as field `field`. */
  varint(field: number, value: number): this {
    this.#varint(field << 3);
    this.#varint(value);
    return this;
  }

  float(field: number, value: number): this {
    this.#varint((field << 3) | 5);
    this.#bytes.push(...new Uint8Array(new Float32Array([value]).buffer));
    return this;
  }

  bytes(field: number, value: Uint8Array): this {
    this.#varint((field << 3) | 2);
    this.#varint(value.length);
    for (const byte of value) this.#bytes.push(byte);
    return this;
  }

  text(field: number, value: string): this {
    return this.bytes(field, new TextEncoder().encode(value));
  }

  message(field: number, write: (inner: ProtobufWriter) => void): this {
    const inner = new ProtobufWriter();
    write(inner);
    return this.bytes(field, inner.finish());
  }

  finish(): Uint8Array {
    return Uint8Array.from(this.#bytes);
  }

  #varint(value: number): void {
    for (let rest = value; ; rest = Math.floor(rest / 128)) {
      if (rest < 128) {
        this.#bytes.push(rest);
        return;
      }
      this.#bytes.push((rest % 128) + 128);
    }
  }
}
