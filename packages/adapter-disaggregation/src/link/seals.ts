import { TransferError } from '../errors.ts';

/** Bytes of the seal behind each frame: half of an HMAC-SHA-256. */
export const SEAL_BYTES = 16;
/** Bytes that a shared key has at least. */
export const MIN_KEY_BYTES = 16;

const utf8 = new TextEncoder();

/** A key as the platform wants it. */
export type SealKey = CryptoKey;

/** @throws {TransferError} `invalid-transport-options` for a key that could be guessed */
export function importKey(key: Uint8Array): Promise<SealKey> {
  if (key.length < MIN_KEY_BYTES)
    throw new TransferError(
      'invalid-transport-options',
      `the shared key has ${key.length} bytes; take ${MIN_KEY_BYTES} random ones or more, the same on both sides`,
    );
  return toSealKey(key);
}

/** HMAC-SHA-256 of a label and some bytes. Labels tell apart what is proven; none is the beginning of another. */
export async function labelled(key: SealKey, label: string, ...parts: readonly Uint8Array[]): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.sign('HMAC', key, joined(utf8.encode(`bufferwise ${label}\n`), ...parts)));
}

/** A key that is good for one direction of one connection. */
export async function derivedKey(key: SealKey, label: string, ...parts: readonly Uint8Array[]): Promise<SealKey> {
  return toSealKey(await labelled(key, label, ...parts));
}

/** The seal of the frame with a number: the same frame at another place has another. */
export async function sealOf(key: SealKey, number: number, frame: Uint8Array): Promise<Uint8Array> {
  const counted = new Uint8Array(8);
  new DataView(counted.buffer).setBigUint64(0, BigInt(number), true);
  return new Uint8Array(await crypto.subtle.sign('HMAC', key, joined(counted, frame))).subarray(0, SEAL_BYTES);
}

/** Takes the same time wherever the bytes differ. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= a[i] ^ b[i];
  return difference === 0;
}

export function joined(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function toSealKey(bytes: Uint8Array): Promise<SealKey> {
  return crypto.subtle.importKey('raw', bytes.slice(), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
}
