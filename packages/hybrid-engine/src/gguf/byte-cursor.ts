import { ModelError, type ModelErrorCode } from '../model/model-error.ts';
import { decodeUtf8 } from '../model/utf8.ts';

/** Reads little-endian values one behind the other. Every read is checked against the end of the bytes first. */
export class ByteCursor {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #position = 0;

  /** @param bytes looked into, never copied as a whole */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Bytes read so far. */
  get position(): number {
    return this.#position;
  }

  uint8(): number {
    return this.#view.getUint8(this.#take(1, 'a value'));
  }

  int8(): number {
    return this.#view.getInt8(this.#take(1, 'a value'));
  }

  uint16(): number {
    return this.#view.getUint16(this.#take(2, 'a value'), true);
  }

  int16(): number {
    return this.#view.getInt16(this.#take(2, 'a value'), true);
  }

  uint32(): number {
    return this.#view.getUint32(this.#take(4, 'a value'), true);
  }

  int32(): number {
    return this.#view.getInt32(this.#take(4, 'a value'), true);
  }

  float32(): number {
    return this.#view.getFloat32(this.#take(4, 'a value'), true);
  }

  float64(): number {
    return this.#view.getFloat64(this.#take(8, 'a value'), true);
  }

  uint64(): bigint {
    return this.#view.getBigUint64(this.#take(8, 'a value'), true);
  }

  int64(): bigint {
    return this.#view.getBigInt64(this.#take(8, 'a value'), true);
  }

  /**
   * A 64-bit count of things that take at least `leastBytes` each, refused when the rest of the file cannot hold so many.
   *
   * @throws {ModelError} `gguf-truncated`
   */
  count(what: string, leastBytes: number): number {
    const count = this.uint64();
    const room = Math.floor((this.#bytes.length - this.#position) / leastBytes);
    if (count > room) this.fail('gguf-truncated', `${count} ${what} are announced and the rest of the file has room for ${room}`);
    return Number(count);
  }

  /** A text: its length in bytes as 64 bits, then UTF-8. `code` is the error's when it is too long or not UTF-8. */
  text(what: string, maxBytes: number, code: ModelErrorCode): string {
    const length = this.count(`bytes of ${what}`, 1);
    if (length > maxBytes) this.fail(code, `${what} has ${length} bytes, more than ${maxBytes}`);
    const begin = this.#take(length, what);
    try {
      return decodeUtf8(this.#bytes.subarray(begin, begin + length));
    } catch (cause) {
      this.fail(code, `${what} is not UTF-8`, undefined, cause);
    }
  }

  /** @throws {ModelError} always, with the place reached so far */
  fail(code: ModelErrorCode, what: string, tensor?: string, cause?: unknown): never {
    const message = `${what} (byte ${this.#position}). Fetch or export the GGUF file again.`;
    throw new ModelError(code, message, { tensor, offset: this.#position, cause });
  }

  #take(numBytes: number, what: string): number {
    const begin = this.#position;
    if (numBytes > this.#bytes.length - begin) {
      this.fail('gguf-truncated', `The file ends inside of ${what}: it has ${this.#bytes.length} bytes`);
    }
    this.#position += numBytes;
    return begin;
  }
}
