import type { ByteCursor } from './byte-cursor.ts';

/** One value of a GGUF file's metadata. 64-bit integers that a number cannot hold exactly are bigints. */
export type GgufValue = number | bigint | boolean | string | readonly GgufValue[];

/** Metadata by key, in the order of the file. */
export type GgufMetadata = ReadonlyMap<string, GgufValue>;

/** Longest key that the format allows, in bytes. */
const MAX_KEY_BYTES = 2 ** 16 - 1;

/** Longest text: no chat template comes near. */
const MAX_TEXT_BYTES = 2 ** 26;

/** Arrays inside of arrays, at most. */
const MAX_NESTING = 4;

/** Bytes of the shortest entry: an empty key, its type, a value of one byte. */
const LEAST_ENTRY_BYTES = 8 + 4 + 1;

const TEXT_TYPE = 8;
const ARRAY_TYPE = 9;

interface ScalarType {
  /** Bytes that a value takes at least. */
  bytes: number;
  read(cursor: ByteCursor): GgufValue;
}

/**
 * Types of values by their number in the file; arrays are apart.
 * @see ggml docs/gguf.md, gguf_metadata_value_type
 */
const SCALAR_TYPES: ReadonlyMap<number, ScalarType> = new Map([
  [0, { bytes: 1, read: (cursor) => cursor.uint8() }],
  [1, { bytes: 1, read: (cursor) => cursor.int8() }],
  [2, { bytes: 2, read: (cursor) => cursor.uint16() }],
  [3, { bytes: 2, read: (cursor) => cursor.int16() }],
  [4, { bytes: 4, read: (cursor) => cursor.uint32() }],
  [5, { bytes: 4, read: (cursor) => cursor.int32() }],
  [6, { bytes: 4, read: (cursor) => cursor.float32() }],
  [7, { bytes: 1, read: readFlag }],
  [TEXT_TYPE, { bytes: 8, read: (cursor) => cursor.text('a text of the metadata', MAX_TEXT_BYTES, 'gguf-metadata') }],
  [10, { bytes: 8, read: (cursor) => narrowed(cursor.uint64()) }],
  [11, { bytes: 8, read: (cursor) => narrowed(cursor.int64()) }],
  [12, { bytes: 8, read: (cursor) => cursor.float64() }],
]);

/** Reads `numEntries` entries of key, type and value. */
export function readMetadata(cursor: ByteCursor, numEntries: number): GgufMetadata {
  const metadata = new Map<string, GgufValue>();
  for (let i = 0; i < numEntries; i++) {
    const key = cursor.text('a key of the metadata', MAX_KEY_BYTES, 'gguf-metadata');
    if (metadata.has(key)) cursor.fail('gguf-metadata', `The metadata has the key "${key}" twice`);
    metadata.set(key, readValue(cursor, cursor.uint32(), 0));
  }
  return metadata;
}

/** The number of entries, as far as the file has room for them. */
export function readMetadataCount(cursor: ByteCursor): number {
  return cursor.count('metadata entries', LEAST_ENTRY_BYTES);
}

function readValue(cursor: ByteCursor, type: number, depth: number): GgufValue {
  if (type === ARRAY_TYPE) return readArray(cursor, depth + 1);
  return scalarType(cursor, type).read(cursor);
}

function readArray(cursor: ByteCursor, depth: number): readonly GgufValue[] {
  if (depth > MAX_NESTING) cursor.fail('gguf-metadata', `Arrays of the metadata are nested more than ${MAX_NESTING} deep`);
  const type = cursor.uint32();
  const leastBytes = type === ARRAY_TYPE ? 4 + 8 : scalarType(cursor, type).bytes;
  const length = cursor.count('elements of an array', leastBytes);
  const values: GgufValue[] = [];
  for (let i = 0; i < length; i++) values.push(readValue(cursor, type, depth));
  return values;
}

function scalarType(cursor: ByteCursor, type: number): ScalarType {
  return (
    SCALAR_TYPES.get(type) ?? cursor.fail('gguf-metadata', `The metadata has a value of type ${type}, which no version knows`)
  );
}

function readFlag(cursor: ByteCursor): boolean {
  const byte = cursor.uint8();
  if (byte > 1) cursor.fail('gguf-metadata', `A flag of the metadata is ${byte}, neither 0 nor 1`);
  return byte === 1;
}

function narrowed(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
