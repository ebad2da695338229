import { encodeUtf8 } from '../../model/utf8.ts';

/** A value to write, with the number of its type: `[4, 7]` is 7 as uint32, `[9, 4, [1, 2]]` an array of uint32. */
export type TypedValue = readonly [type: number, value: unknown] | readonly [type: 9, elementType: number, values: unknown[]];

/** A tensor to write: sizes innermost first, as in the file. */
export interface TensorToWrite {
  name: string;
  sizes: readonly (number | bigint)[];
  type: number;
  /** Bytes from the start of the data; default behind the one before, aligned. */
  offset?: number | bigint;
  bytes: ArrayLike<number>;
}

export interface FileToWrite {
  version?: number;
  alignment?: number;
  metadata?: Readonly<Record<string, TypedValue>>;
  tensors?: readonly TensorToWrite[];
  /** Said instead of the true counts. */
  numTensors?: bigint;
  numEntries?: bigint;
}

/** Writes a GGUF file, also one that no reader should take. */
export function buildGguf(file: FileToWrite): Uint8Array {
  const { version = 3, alignment = 32, metadata = {}, tensors = [] } = file;
  const out = new Writer();
  out.bytes(encodeUtf8('GGUF'));
  out.number(4, version);
  out.number(10, file.numTensors ?? BigInt(tensors.length));
  const entries = Object.entries(metadata);
  out.number(10, file.numEntries ?? BigInt(entries.length));
  for (const [key, value] of entries) {
    out.text(key);
    out.typed(value);
  }
  const data = new Writer();
  for (const { name, sizes, type, offset, bytes } of tensors) {
    data.align(alignment);
    out.text(name);
    out.number(4, sizes.length);
    for (const size of sizes) out.number(10, BigInt(size));
    out.number(4, type);
    out.number(10, BigInt(offset ?? data.length));
    data.bytes(bytes);
  }
  out.align(alignment);
  out.bytes(data.written());
  return out.written();
}

/** The bytes of binary32 values. */
export function singles(...values: number[]): Uint8Array {
  return new Uint8Array(Float32Array.from(values).buffer);
}

/** Bytes of numbers by the number of their type. */
const NUMBER_BYTES: Readonly<Record<number, number>> = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };

class Writer {
  readonly #out: number[] = [];

  get length(): number {
    return this.#out.length;
  }

  bytes(bytes: ArrayLike<number>): void {
    for (let i = 0; i < bytes.length; i++) this.#out.push(bytes[i]);
  }

  align(alignment: number): void {
    while (this.#out.length % alignment !== 0) this.#out.push(0);
  }

  text(text: string): void {
    const bytes = encodeUtf8(text);
    this.number(10, BigInt(bytes.length));
    this.bytes(bytes);
  }

  typed([type, value, elements]: TypedValue): void {
    this.number(4, type);
    if (type === 9) this.array(value as number, elements ?? []);
    else this.value(type, value);
  }

  array(elementType: number, elements: readonly unknown[]): void {
    this.number(4, elementType);
    this.number(10, BigInt(elements.length));
    for (const element of elements) {
      if (elementType === 9) this.array(...(element as [number, unknown[]]));
      else this.value(elementType, element);
    }
  }

  value(type: number, value: unknown): void {
    if (type === 8) this.text(value as string);
    else this.number(type, value as number | bigint);
  }

  number(type: number, value: number | bigint): void {
    const view = new DataView(new ArrayBuffer(8));
    if (type === 6) view.setFloat32(0, Number(value), true);
    else if (type === 12) view.setFloat64(0, Number(value), true);
    else view.setBigUint64(0, BigInt.asUintN(64, BigInt(value)), true);
    this.bytes(new Uint8Array(view.buffer, 0, NUMBER_BYTES[type] ?? 0));
  }

  written(): Uint8Array {
    return Uint8Array.from(this.#out);
  }
}
