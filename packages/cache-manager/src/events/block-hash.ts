import type { BlockKey } from '../tree/block-key.ts';

/** A key as 64 lower-case hexadecimal digits. */
export function keyToHex(key: BlockKey): string {
  return Array.from(key, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The last 8 bytes of a key as an unsigned number, first byte highest: what vLLM and the routers that listen to it call a block hash. */
export function keyToU64(key: BlockKey): bigint {
  return new DataView(key.buffer, key.byteOffset, key.byteLength).getBigUint64(key.byteLength - 8);
}

/** The first 8 bytes of a key in the same way: TensorRT-LLM's `v2_sha256_64`. Its `v2_sha256` is `keyToHex`. */
export function keyToLeadingU64(key: BlockKey): bigint {
  return new DataView(key.buffer, key.byteOffset, key.byteLength).getBigUint64(0);
}
