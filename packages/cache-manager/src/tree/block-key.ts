import { StateError } from '@bufferwise/core-policy';
import { sha256 } from '@noble/hashes/sha2.js';
import { type ReuseScope, type ScopeIds, scopeIds, scopeKey } from './reuse-scope.ts';
import { type MultimodalDigest, TokenBuffer, type TokenSeq } from './token-seq.ts';

/**
 * Name of a block outside of this process: 32 bytes, SHA-256 over everything before the block and the block itself, its
 * scope first. Equal keys mean equal scope and equal tokens from the first one on.
 *
 * Matching never uses keys: it compares tokens. Keys are for events, stores and transfers, and computed only for them.
 */
export type BlockKey = Uint8Array;

export const KEY_BYTES = 32;

/**
 * The key of the empty beginning of a scope, the parent of its first blocks: SHA-256 of a mask byte (bit 0: LoRA id present,
 * bit 1: salt present) and of the ids that are, 8 bytes each, little endian.
 *
 * @throws {StateError} `invalid-scope` on an id that is no unsigned 64-bit integer
 */
export function rootKey(scope?: ReuseScope): BlockKey {
  return rootKeyOf(scopeIds(scopeKey(scope)));
}

/** The same for a scope that was checked. */
export function rootKeyOf({ loraId, salt }: ScopeIds): BlockKey {
  const ids = [loraId, salt].filter((id) => id !== undefined);
  const bytes = new Uint8Array(1 + 8 * ids.length);
  bytes[0] = (loraId === undefined ? 0 : 1) | (salt === undefined ? 0 : 2);
  const view = new DataView(bytes.buffer);
  ids.forEach((id, i) => {
    view.setBigUint64(1 + 8 * i, id, true);
  });
  return sha256(bytes);
}

/**
 * The key of a block: SHA-256 of its parent's key and its tokens. A token is 4 bytes, little endian; a digest is its 32
 * bytes. A partial block is hashed in the same way over the tokens it has.
 *
 * @param parent key of the block before, `rootKey(scope)` for the first
 * @throws {TokenError} on anything that is no token
 */
export function blockKey(parent: BlockKey, tokens: TokenSeq): BlockKey {
  const buffer = TokenBuffer.borrow(tokens);
  return hashBlock(parent, buffer.values, buffer.digests ?? undefined, 0, buffer.length);
}

/**
 * The keys of all blocks of a token sequence, in order; the last one is that of a partial block when the tokens do not fill
 * it.
 *
 * @throws {TokenError} on anything that is no token; {StateError} `invalid-scope`, or `invalid-tokens-per-block`
 * @example blockKeys([0, 1, 2, 3, 4, 5], {}, 4) // two keys: of [0, 1, 2, 3], then of [4, 5] behind it
 */
export function blockKeys(tokens: TokenSeq, scope: ReuseScope | undefined, tokensPerBlock: number): BlockKey[] {
  if (!Number.isSafeInteger(tokensPerBlock) || tokensPerBlock < 1) {
    throw new StateError(
      'invalid-tokens-per-block',
      `blockKeys: ${tokensPerBlock} tokens a block; it must be a whole number above 0`,
    );
  }
  const buffer = TokenBuffer.borrow(tokens);
  const keys: BlockKey[] = [];
  let parent = rootKey(scope);
  for (let offset = 0; offset < buffer.length; offset += tokensPerBlock) {
    parent = hashBlock(
      parent,
      buffer.values,
      buffer.digests ?? undefined,
      offset,
      Math.min(tokensPerBlock, buffer.length - offset),
    );
    keys.push(parent);
  }
  return keys;
}

/** Hashes `count` tokens from `offset` on behind a parent's key. `digests` are by position in `values`. */
export function hashBlock(
  parent: BlockKey,
  values: Uint32Array,
  digests: ReadonlyMap<number, MultimodalDigest> | undefined,
  offset: number,
  count: number,
): BlockKey {
  let length = KEY_BYTES + 4 * count;
  if (digests !== undefined) for (let i = 0; i < count; i++) if (digests.has(offset + i)) length += KEY_BYTES - 4;
  const bytes = new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  bytes.set(parent);
  let at = KEY_BYTES;
  for (let i = 0; i < count; i++) {
    const digest = digests?.get(offset + i);
    if (digest !== undefined) {
      bytes.set(digest, at);
      at += KEY_BYTES;
    } else {
      view.setUint32(at, values[offset + i], true);
      at += 4;
    }
  }
  return sha256(bytes);
}

/** Whether two keys, or the lack of them, are the same. */
export function sameKey(a: BlockKey | null, b: BlockKey | null): boolean {
  if (a === null || b === null) return a === b;
  for (let i = 0; i < KEY_BYTES; i++) if (a[i] !== b[i]) return false;
  return true;
}
