import { StateError } from '@bufferwise/core-policy';
import { TokenError } from '../errors/token-error.ts';
import { copyOfDigest, MAX_TOKEN, type MultimodalDigest } from './token-seq.ts';

/**
 * Tokens that stand for one piece of non-text content in a prompt: its digest where its first placeholder is, then the ids
 * `idOffset + 1`, `idOffset + 2`, … So two prompts match inside a picture only when it is the same picture.
 *
 * A piece that is cut across calls goes on with `tokenOffset`, the placeholders of it that came before: from 1 on there is no
 * digest.
 *
 * @param idOffset    first id of the range that placeholders use, usually the size of the vocabulary, so that they meet no text
 * @param digest      32 bytes, for instance the SHA-256 of the content; copied
 * @param count       placeholders wanted, at least 1
 * @throws {TokenError} `invalid-digest`, or `invalid-token` when an id would be beyond 2^32 - 1; {StateError}
 *   `invalid-token-count` on a count or an offset that is none
 */
export function multimodalTokens(
  idOffset: number,
  digest: MultimodalDigest,
  count: number,
  tokenOffset = 0,
): (number | MultimodalDigest)[] {
  const owned = copyOfDigest(digest, 0);
  if (!Number.isSafeInteger(count) || count < 1) {
    throw new StateError('invalid-token-count', `multimodalTokens: ${count} placeholders; it must be a whole number above 0`);
  }
  if (!Number.isSafeInteger(tokenOffset) || tokenOffset < 0) {
    throw new StateError(
      'invalid-token-count',
      `multimodalTokens: ${tokenOffset} placeholders came before; it must be a whole number from 0 on`,
    );
  }
  const first = idOffset + tokenOffset;
  if (!Number.isSafeInteger(idOffset) || idOffset < 0 || first + count - 1 > MAX_TOKEN) {
    throw new TokenError(
      'invalid-token',
      0,
      `multimodalTokens: ids ${first} to ${first + count - 1} are no token ids; these are whole numbers from 0 to ${MAX_TOKEN}`,
    );
  }
  return Array.from({ length: count }, (_, i) => (tokenOffset + i === 0 ? owned : first + i));
}
