import { blockKeys } from '../tree/block-key.ts';
import { type ReuseScope, scopeIds, scopeKey } from '../tree/reuse-scope.ts';
import { TokenBuffer, type TokenSeq } from '../tree/token-seq.ts';
import { keyToLeadingU64 } from './block-hash.ts';

const MASK = (1n << 64n) - 1n;

/**
 * TensorRT-LLM's older block hashes, `v1_block_key`, of all blocks of a token sequence: for routers that know nothing newer.
 * 64 bits that mix well and resist nobody, so they name blocks to friends only. From the first block with a digest on they
 * are the first 8 bytes of the block's key.
 *
 * A hash depends on everything before its block, so an event is translated with the tokens from the first one on.
 *
 * @throws what `blockKeys` throws
 * @see TensorRT-LLM batch_manager, the hash of a block key
 */
export function v1BlockHashes(tokens: TokenSeq, scope: ReuseScope | undefined, tokensPerBlock: number): bigint[] {
  const keys = blockKeys(tokens, scope, tokensPerBlock);
  const { loraId, salt } = scopeIds(scopeKey(scope));
  const { values, digests, length } = TokenBuffer.borrow(tokens);
  const firstDigest = digests === null ? length : Math.min(...digests.keys());
  const hashes: bigint[] = [];
  let parent = 0n;
  for (let begin = 0; begin < length; begin += tokensPerBlock) {
    const end = Math.min(begin + tokensPerBlock, length);
    if (end > firstDigest) {
      hashes.push(keyToLeadingU64(keys[hashes.length]));
      continue;
    }
    let hash = BigInt(end - begin) ^ ((parent * 0xbf58476d1ce4e5b9n) & MASK);
    if (parent === 0n && salt !== undefined) hash = mixed64(hash, salt);
    for (let at = begin; at < end; at++) hash = mixed32(hash, values[at]);
    if (loraId !== undefined) hash = mixed64(hash, loraId);
    hashes.push(hash);
    parent = hash;
  }
  return hashes;
}

/** `seed` with 32 bits mixed in. */
function mixed32(seed: bigint, value: number): bigint {
  let v = value;
  v = Math.imul((v >>> 16) ^ v, 0x45d9f3b) >>> 0;
  v = Math.imul((v >>> 16) ^ v, 0x45d9f3b) >>> 0;
  v = (v >>> 16) ^ v;
  return folded(seed, BigInt((v + 0x9e3779b9) >>> 0));
}

/** `seed` with 64 bits mixed in. */
function mixed64(seed: bigint, value: bigint): bigint {
  let v = value;
  v = ((v ^ (v >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  v = ((v ^ (v >> 27n)) * 0x94d049bb133111ebn) & MASK;
  v ^= v >> 31n;
  return folded(seed, v + 0x9e3779b9n);
}

function folded(seed: bigint, value: bigint): bigint {
  return seed ^ ((value + (seed << 6n) + (seed >> 2n)) & MASK);
}
