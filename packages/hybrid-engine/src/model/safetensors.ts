import { ModelError, type ModelErrorCode } from './model-error.ts';
import { decodeUtf8 } from './utf8.ts';
import type { WeightTensor } from './weight-tensor.ts';

/** Element types that this reader takes, and the bytes of one element. */
const DTYPE_BYTES = { F16: 2, BF16: 2, F32: 4 } as const;

type TensorDtype = keyof typeof DTYPE_BYTES;

/** A weight file, opened. The tensors look into the bytes that were given; those must not change. */
export interface Safetensors {
  readonly metadata: ReadonlyMap<string, string>;
  /** By name, in the order of their place in the file. */
  readonly tensors: ReadonlyMap<string, WeightTensor>;
}

/** Bytes before the header: its length as a 64-bit little-endian integer. */
const PREFIX_BYTES = 8;

/** The format's own limit on the length of a header. */
const MAX_HEADER_BYTES = 100_000_000;

/** More dimensions than any weight has. */
const MAX_RANK = 8;

/**
 * Opens a safetensors file. The header is taken as hostile: nothing is allocated by its word, every tensor must lie inside
 * the file with exactly the bytes its shape needs, and the tensors must tile the data without overlap, hole or tail.
 *
 * @param bytes the whole file; the result keeps views into it and copies nothing
 * @throws {ModelError} `safetensors-truncated`, `safetensors-header`, `safetensors-tensor` or `safetensors-layout`
 */
export function readSafetensors(bytes: Uint8Array): Safetensors {
  const headerBytes = readHeaderLength(bytes);
  const data = bytes.subarray(PREFIX_BYTES + headerBytes);
  const header = readHeader(bytes.subarray(PREFIX_BYTES, PREFIX_BYTES + headerBytes));
  const metadata = readMetadata(header.get('__metadata__'));
  header.delete('__metadata__');
  const entries = [...header].map(([name, entry]) => readEntry(name, entry));
  checkLayout(entries, data.length);
  const tensors = new Map<string, WeightTensor>();
  for (const { name, type, shape, numElements, begin, end } of entries) {
    tensors.set(name, { name, type, shape, numElements, bytes: data.subarray(begin, end) });
  }
  return { metadata, tensors };
}

/** A tensor whose place in the file has not been checked against the others yet. */
interface Entry extends Omit<WeightTensor, 'bytes'> {
  /** Bytes from the start of the data. */
  begin: number;
  end: number;
}

function fail(code: ModelErrorCode, message: string, tensor?: string, cause?: unknown): never {
  throw new ModelError(code, `${message}. Fetch or export the weight file again.`, { tensor, cause });
}

function readHeaderLength(bytes: Uint8Array): number {
  if (bytes.length < PREFIX_BYTES) {
    fail(
      'safetensors-truncated',
      `The file has ${bytes.length} bytes, less than the ${PREFIX_BYTES} that hold the length of its header`,
    );
  }
  const length = new DataView(bytes.buffer, bytes.byteOffset, PREFIX_BYTES).getBigUint64(0, true);
  if (length > MAX_HEADER_BYTES) {
    fail('safetensors-header', `The header claims ${length} bytes; the format allows ${MAX_HEADER_BYTES}`);
  }
  const rest = bytes.length - PREFIX_BYTES;
  if (length > rest) fail('safetensors-truncated', `The header claims ${length} bytes and the file has ${rest} left`);
  return Number(length);
}

function readHeader(bytes: Uint8Array): Map<string, unknown> {
  let header: unknown;
  try {
    header = JSON.parse(decodeUtf8(bytes));
  } catch (cause) {
    fail('safetensors-header', 'The header is not JSON in UTF-8', undefined, cause);
  }
  if (!isRecord(header)) fail('safetensors-header', 'The header is not an object of tensors by name');
  return new Map(Object.entries(header));
}

function readMetadata(metadata: unknown): Map<string, string> {
  if (metadata === undefined) return new Map();
  if (!isRecord(metadata)) fail('safetensors-header', '`__metadata__` is not an object');
  const read = new Map<string, string>();
  for (const [key, text] of Object.entries(metadata)) {
    if (typeof text !== 'string') fail('safetensors-header', `\`__metadata__.${key}\` is not a string`);
    read.set(key, text);
  }
  return read;
}

function readEntry(name: string, entry: unknown): Entry {
  const wrong = (message: string): never => fail('safetensors-tensor', `Tensor "${name}": ${message}`, name);
  if (!isRecord(entry)) return wrong('its entry is not an object');
  const { dtype, shape, data_offsets: offsets } = entry;
  if (typeof dtype !== 'string' || !Object.hasOwn(DTYPE_BYTES, dtype)) {
    return wrong(`dtype ${JSON.stringify(dtype)} is none of ${Object.keys(DTYPE_BYTES).join(', ')}`);
  }
  if (!Array.isArray(shape) || shape.length > MAX_RANK || !shape.every(isSize)) {
    return wrong(`its shape is not a list of at most ${MAX_RANK} whole numbers >= 0`);
  }
  const numElements = shape.reduce((product: number, size: number) => product * size, 1);
  const numBytes = numElements * DTYPE_BYTES[dtype as TensorDtype];
  if (!Number.isSafeInteger(numBytes)) return wrong(`its shape [${shape}] is larger than any file`);
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isSize) || offsets[0] > offsets[1]) {
    return wrong('its data_offsets are not two ascending whole numbers >= 0');
  }
  const [begin, end] = offsets as [number, number];
  if (end - begin !== numBytes)
    return wrong(`shape [${shape}] of ${dtype} needs ${numBytes} bytes, its data_offsets span ${end - begin}`);
  return { name, type: dtype as TensorDtype, shape: Object.freeze([...(shape as number[])]), numElements, begin, end };
}

/** Sorts the entries by place and makes sure that they tile `[0, dataBytes)`. */
function checkLayout(entries: Entry[], dataBytes: number): void {
  entries.sort((a, b) => a.begin - b.begin || a.end - b.end);
  let covered = 0;
  for (const { name, begin, end } of entries) {
    if (end > dataBytes) {
      fail('safetensors-truncated', `Tensor "${name}" ends at byte ${end} of the data and the file holds ${dataBytes}`, name);
    }
    if (begin < covered)
      fail('safetensors-layout', `Tensor "${name}" begins at byte ${begin}, inside the tensor before it`, name);
    if (begin > covered) fail('safetensors-layout', `${begin - covered} bytes before tensor "${name}" belong to no tensor`, name);
    covered = end;
  }
  if (covered < dataBytes) fail('safetensors-layout', `The last ${dataBytes - covered} bytes belong to no tensor`);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isSize(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
