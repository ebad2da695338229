import { grownColumn } from '../../columns.ts';

// Browsers and Node have it; the language library that this package is compiled with does not.
const { TextEncoder } = globalThis as unknown as { TextEncoder: new () => { encode(text: string): Uint8Array } };

/**
 * Writes MessagePack, every value in the fewest bytes that the format has for it, as the encoders do whose output readers
 * compare byte by byte. Whole numbers may be `bigint`, up to 64 bits with or without sign.
 */
export class MsgpackWriter {
  #bytes = new Uint8Array(256);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  /** What was written so far; the caller owns it. */
  finish(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }

  nil(): void {
    this.#byte(0xc0);
  }

  /** A whole number from -2^63 to 2^64 - 1. */
  integer(value: number | bigint): void {
    if (typeof value === 'bigint' && (value > 0x7fffffffn || value < -0x80000000n)) this.#large(value);
    else if (typeof value === 'number' && (value > 0x7fffffff || value < -0x80000000)) this.#large(BigInt(value));
    else if (value >= 0) this.#positive(Number(value));
    else this.#negative(Number(value));
  }

  /** Always 9 bytes: a reader that wants a float refuses an integer. */
  float64(value: number): void {
    this.#byte(0xcb);
    const at = this.#advance(8);
    this.#view.setFloat64(at, value);
  }

  string(text: string): void {
    const bytes = new TextEncoder().encode(text);
    if (bytes.length < 32) this.#byte(0xa0 | bytes.length);
    else this.#sized(bytes.length, 0xd9, 0xda, 0xdb);
    const at = this.#advance(bytes.length);
    this.#bytes.set(bytes, at);
  }

  /** Announces the elements that are written next. */
  array(count: number): void {
    if (count < 16) this.#byte(0x90 | count);
    else this.#sized(count, null, 0xdc, 0xdd);
  }

  /** Announces the pairs of key and value that are written next. */
  map(count: number): void {
    if (count < 16) this.#byte(0x80 | count);
    else this.#sized(count, null, 0xde, 0xdf);
  }

  #positive(value: number): void {
    if (value < 0x80) this.#byte(value);
    else this.#sized(value, 0xcc, 0xcd, 0xce);
  }

  #negative(value: number): void {
    if (value >= -0x20) this.#byte(value & 0xff);
    else if (value >= -0x80) {
      this.#byte(0xd0);
      const at = this.#advance(1);
      this.#view.setInt8(at, value);
    } else if (value >= -0x8000) {
      this.#byte(0xd1);
      const at = this.#advance(2);
      this.#view.setInt16(at, value);
    } else {
      this.#byte(0xd2);
      const at = this.#advance(4);
      this.#view.setInt32(at, value);
    }
  }

  /** What 31 bits and a sign cannot hold. */
  #large(value: bigint): void {
    if (value >= 0n && value <= 0xffffffffn) {
      this.#sized(Number(value), null, null, 0xce);
      return;
    }
    this.#byte(value < 0n ? 0xd3 : 0xcf);
    const at = this.#advance(8);
    this.#view.setBigUint64(at, BigInt.asUintN(64, value));
  }

  /** A count behind the tag for the fewest bytes it fits in; null where the format has no such tag. */
  #sized(count: number, tag8: number | null, tag16: number | null, tag32: number): void {
    if (tag8 !== null && count < 0x100) {
      this.#byte(tag8);
      this.#byte(count);
    } else if (tag16 !== null && count < 0x10000) {
      this.#byte(tag16);
      const at = this.#advance(2);
      this.#view.setUint16(at, count);
    } else {
      this.#byte(tag32);
      const at = this.#advance(4);
      this.#view.setUint32(at, count);
    }
  }

  #byte(value: number): void {
    const at = this.#advance(1);
    this.#bytes[at] = value;
  }

  /** Makes room for `count` bytes; returns where they go. */
  #advance(count: number): number {
    const at = this.#length;
    this.#length += count;
    if (this.#length > this.#bytes.length) {
      this.#bytes = grownColumn(this.#bytes, Math.max(this.#bytes.length * 2, this.#length));
      this.#view = new DataView(this.#bytes.buffer);
    }
    return at;
  }
}
