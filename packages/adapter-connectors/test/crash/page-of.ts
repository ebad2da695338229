import { createHash } from 'node:crypto';

/** 20 to 90 kB that only this key has. */
export function pageOf(key: string): Uint8Array {
  const seed = createHash('sha256').update(key).digest();
  const page = new Uint8Array(20_000 + (seed.readUInt32LE(0) % 70_000));
  for (let at = 0; at < page.length; at += seed.length) page.set(seed.subarray(0, page.length - at), at);
  return page;
}
