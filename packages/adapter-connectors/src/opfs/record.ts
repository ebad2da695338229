import { openSealedPage, SEAL_BYTES } from '@bufferwise/adapter-kit';
import { crc32c } from '@bufferwise/cache-manager/outside';

/** `BWRC`, as the first four bytes. */
const MAGIC = 0x43525742;
/** `LIVE`. Anything else is a record that is to be skipped. */
const LIVE = 0x4556494c;

/** Bytes in front of the key. */
export const HEAD_BYTES = 32;
/** Where in a record its state and the time of its use are, which change in place. */
export const STATE_AT = 16;
export const USED_AT = 20;

const MAX_KEY_BYTES = 200;
/** Enough to know a record by. */
export const LOOK_BYTES = HEAD_BYTES + MAX_KEY_BYTES;

const utf8 = new TextEncoder();
const ascii = new TextDecoder();

/** What stands before a sealed page. */
export interface RecordHead {
  readonly key: string;
  readonly sealedBytes: number;
  readonly isLive: boolean;
  /** Milliseconds; 0 where the medium says nonsense. */
  readonly usedAt: number;
}

/** Bytes of a record in its segment. Keys are ASCII. */
export function recordBytes(key: string, pageBytes: number): number {
  return HEAD_BYTES + key.length + SEAL_BYTES + pageBytes;
}

/**
 * What goes before a sealed page in a segment. Little endian:
 *
 * | bytes | what                                                  |
 * | ----- | ----------------------------------------------------- |
 * | 0–3   | `BWRC`                                                |
 * | 4–7   | bytes of the key                                      |
 * | 8–11  | bytes of the sealed page                              |
 * | 12–15 | CRC-32C of bytes 0–11 and the key                     |
 * | 16–19 | `LIVE`, or zero once the page was removed             |
 * | 20–27 | when it was used last, float64, milliseconds          |
 * | 28–31 | zero                                                  |
 * | 32–   | the key in ASCII, then the sealed page                |
 *
 * State and time are outside of the sum, since they change in place: a torn state is a page removed, a torn time another order.
 */
export function encodeHead(key: string, sealedBytes: number, usedAt: number): Uint8Array {
  const bytes = new Uint8Array(HEAD_BYTES + key.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC, true);
  view.setUint32(4, key.length, true);
  view.setUint32(8, sealedBytes, true);
  bytes.set(utf8.encode(key), HEAD_BYTES);
  view.setUint32(12, sumOf(bytes, key.length), true);
  view.setUint32(STATE_AT, LIVE, true);
  view.setFloat64(USED_AT, usedAt, true);
  return bytes;
}

/** The head at the beginning of some bytes; null unless it is whole and its sum is right. */
export function decodeHead(bytes: Uint8Array): RecordHead | null {
  if (bytes.length < HEAD_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const keyBytes = view.getUint32(4, true);
  if (view.getUint32(0, true) !== MAGIC || keyBytes === 0 || keyBytes > MAX_KEY_BYTES) return null;
  if (bytes.length < HEAD_BYTES + keyBytes || view.getUint32(12, true) !== sumOf(bytes, keyBytes)) return null;
  const usedAt = view.getFloat64(USED_AT, true);
  return {
    key: ascii.decode(bytes.subarray(HEAD_BYTES, HEAD_BYTES + keyBytes)),
    sealedBytes: view.getUint32(8, true),
    isLive: view.getUint32(STATE_AT, true) === LIVE,
    usedAt: usedAt >= 0 && usedAt <= Number.MAX_SAFE_INTEGER ? usedAt : 0,
  };
}

/** The page of a whole record, as a view; null unless all of it is as it was written. */
export function pageOfRecord(key: string, record: Uint8Array): Uint8Array | null {
  const head = decodeHead(record);
  if (head === null || head.key !== key || HEAD_BYTES + key.length + head.sealedBytes !== record.length) return null;
  return openSealedPage(key, sealedOfRecord(key, record));
}

/** The sealed page of a whole record, as a view. */
export function sealedOfRecord(key: string, record: Uint8Array): Uint8Array {
  return record.subarray(HEAD_BYTES + key.length);
}

function sumOf(bytes: Uint8Array, keyBytes: number): number {
  return crc32c(bytes.subarray(HEAD_BYTES, HEAD_BYTES + keyBytes), crc32c(bytes.subarray(0, 12)));
}
