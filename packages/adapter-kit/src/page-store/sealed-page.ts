import { crc32c } from '@bufferwise/cache-manager/outside';

/** `BWPG`, as the first four bytes. */
const MAGIC = 0x47505742;
const VERSION = 1;

/** Bytes that a seal puts in front of a page. */
export const SEAL_BYTES = 16;

const utf8 = new TextEncoder();

/**
 * A page with what proves it, for media that keep bytes and no promises. Little endian:
 *
 * | bytes | what                                                             |
 * | ----- | ---------------------------------------------------------------- |
 * | 0–3   | `BWPG`                                                           |
 * | 4–7   | version of this form, 1                                          |
 * | 8–11  | bytes of the page                                                |
 * | 12–15 | CRC-32C of the key in UTF-8, a zero byte, and the page           |
 * | 16–   | the page                                                         |
 *
 * The key is part of the sum, so that a page under another name is none.
 *
 * @returns `SEAL_BYTES` more than `bytes`; the caller owns it
 */
export function sealPage(key: string, bytes: Uint8Array): Uint8Array {
  const sealed = new Uint8Array(SEAL_BYTES + bytes.length);
  const view = new DataView(sealed.buffer);
  view.setUint32(0, MAGIC, true);
  view.setUint32(4, VERSION, true);
  view.setUint32(8, bytes.length, true);
  view.setUint32(12, sum(key, bytes), true);
  sealed.set(bytes, SEAL_BYTES);
  return sealed;
}

/**
 * The page of a seal, as a view into `sealed`; null unless it is whole, of this version, and of this key. The view is a plain
 * `Uint8Array` also where `sealed` is a Node `Buffer`, so that its `slice` is a copy.
 */
export function openSealedPage(key: string, sealed: Uint8Array): Uint8Array | null {
  if (sealed.length < SEAL_BYTES) return null;
  const view = new DataView(sealed.buffer, sealed.byteOffset, SEAL_BYTES);
  if (view.getUint32(0, true) !== MAGIC || view.getUint32(4, true) !== VERSION) return null;
  const bytes = new Uint8Array(sealed.buffer, sealed.byteOffset + SEAL_BYTES, sealed.length - SEAL_BYTES);
  if (view.getUint32(8, true) !== bytes.length || view.getUint32(12, true) !== sum(key, bytes)) return null;
  return bytes;
}

function sum(key: string, bytes: Uint8Array): number {
  return crc32c(bytes, crc32c(utf8.encode(`${key}\0`)));
}
