import type { WeightTensor } from '../model/weight-tensor.ts';
import { ByteCursor } from './byte-cursor.ts';
import { type GgufMetadata, readMetadata, readMetadataCount } from './metadata.ts';
import { BLOCK_LAYOUTS, nameOfType, tensorType } from './tensor-type.ts';

/** A GGUF file, opened. The tensors look into the bytes that were given; those must not change. */
export interface GgufFile {
  readonly version: 2 | 3;
  /** Bytes; where tensors may begin. */
  readonly alignment: number;
  readonly metadata: GgufMetadata;
  /** By name, in the order of the file. */
  readonly tensors: ReadonlyMap<string, WeightTensor>;
}

/** `GGUF` as a little-endian word. */
const MAGIC = 0x46554747;

const DEFAULT_ALIGNMENT = 32;
const MAX_ALIGNMENT = 2 ** 16;
const MAX_NAME_BYTES = 64;
const MAX_RANK = 4;

/** Bytes of the shortest tensor entry: an empty name, rank, one size, type, offset. */
const LEAST_TENSOR_BYTES = 8 + 4 + 8 + 4 + 8;

/**
 * Opens a GGUF file of version 2 or 3, little-endian. The file is taken as hostile: a count is believed only as far as the
 * rest of the file has room for it, every tensor must begin aligned and end inside of the file, and no two may overlap.
 *
 * @param file the whole file; the tensors are views into it
 * @throws {ModelError} `gguf-truncated`, `gguf-header`, `gguf-metadata`, `gguf-tensor` or `gguf-layout`, with `offset` or
 *   `tensor` for the place
 * @see ggml docs/gguf.md
 */
export function readGguf(file: Uint8Array | ArrayBuffer): GgufFile {
  const bytes = file instanceof Uint8Array ? file : new Uint8Array(file);
  const cursor = new ByteCursor(bytes);
  const version = readVersion(cursor);
  const numTensors = cursor.count('tensors', LEAST_TENSOR_BYTES);
  const metadata = readMetadata(cursor, readMetadataCount(cursor));
  const alignment = readAlignment(cursor, metadata);
  const entries = Array.from({ length: numTensors }, () => readEntry(cursor, alignment));
  const dataBegin = Math.ceil(cursor.position / alignment) * alignment;
  checkPlaces(cursor, entries, bytes.length - dataBegin);
  const tensors = new Map<string, WeightTensor>();
  for (const { name, type, shape, numElements, begin, end } of entries) {
    if (tensors.has(name)) cursor.fail('gguf-tensor', `Two tensors are called "${name}"`, name);
    tensors.set(name, { name, type, shape, numElements, bytes: bytes.subarray(dataBegin + begin, dataBegin + end) });
  }
  return { version, alignment, metadata, tensors };
}

/** A tensor whose place has not been checked against the others yet. */
interface Entry extends Omit<WeightTensor, 'bytes'> {
  /** Bytes from the start of the data. */
  begin: number;
  end: number;
}

function readVersion(cursor: ByteCursor): 2 | 3 {
  if (cursor.uint32() !== MAGIC) cursor.fail('gguf-header', 'The file does not begin with GGUF');
  const version = cursor.uint32();
  if (version === 2 || version === 3) return version;
  const bigEndian = version !== 0 && (version & 0xffff) === 0;
  return cursor.fail('gguf-header', bigEndian ? 'The file is big-endian' : `The file has version ${version}, not 2 or 3`);
}

function readAlignment(cursor: ByteCursor, metadata: GgufMetadata): number {
  const value = metadata.get('general.alignment') ?? DEFAULT_ALIGNMENT;
  if (typeof value === 'number' && value >= 8 && value <= MAX_ALIGNMENT && Number.isInteger(Math.log2(value))) return value;
  return cursor.fail('gguf-metadata', `general.alignment is ${String(value)}, no power of two from 8 to ${MAX_ALIGNMENT}`);
}

function readEntry(cursor: ByteCursor, alignment: number): Entry {
  const name = cursor.text('the name of a tensor', MAX_NAME_BYTES, 'gguf-tensor');
  const wrong = (what: string): never => cursor.fail('gguf-tensor', `Tensor "${name}" ${what}`, name);
  const rank = cursor.uint32();
  if (rank < 1 || rank > MAX_RANK) return wrong(`has ${rank} dimensions, not 1 to ${MAX_RANK}`);
  const sizes = Array.from({ length: rank }, () => Number(cursor.uint64()));
  const typeId = cursor.uint32();
  const type = tensorType(typeId);
  if (type === undefined) {
    const known = Object.keys(BLOCK_LAYOUTS).join(', ');
    return wrong(`is of type ${nameOfType(typeId)}, and ${known} can be read`);
  }
  const layout = BLOCK_LAYOUTS[type];
  const numElements = sizes.reduce((product, size) => product * size, 1);
  const numBytes = (numElements / layout.elements) * layout.bytes;
  if (numElements === 0 || !Number.isSafeInteger(numElements * layout.bytes)) {
    return wrong(`has the sizes ${sizes.join(', ')}: none may be 0, and the product must be that of a file`);
  }
  if (sizes[0] % layout.elements !== 0) return wrong(`has rows of ${sizes[0]}, no multiple of the ${layout.elements} of ${type}`);
  const offset = cursor.uint64();
  if (offset % BigInt(alignment) !== 0n) return wrong(`begins at byte ${offset} of the data, no multiple of ${alignment}`);
  const begin = Number(offset);
  if (!Number.isSafeInteger(begin + numBytes)) return wrong(`begins at byte ${offset} of the data, behind any file`);
  return { name, type, shape: Object.freeze(sizes.reverse()), numElements, begin, end: begin + numBytes };
}

function checkPlaces(cursor: ByteCursor, entries: readonly Entry[], dataBytes: number): void {
  let covered = 0;
  for (const { name, begin, end } of [...entries].sort((a, b) => a.begin - b.begin || a.end - b.end)) {
    if (end > dataBytes) {
      const left = Math.max(0, dataBytes);
      cursor.fail('gguf-truncated', `Tensor "${name}" ends at byte ${end} of the data and the file has ${left}`, name);
    }
    if (begin < covered) cursor.fail('gguf-layout', `Tensor "${name}" begins inside of the tensor before it`, name);
    covered = end;
  }
}
