import type { ReuseScope, TokenSeq } from '@bufferwise/cache-manager';
import { blockKeys, keyToHex } from '@bufferwise/cache-manager/outside';

/** SHA-256 of a scope and tokens, as 64 hexadecimal digits. Throws {TokenError} on anything that is no token. */
export function promptDigest(tokens: TokenSeq, scope: ReuseScope | undefined): string {
  return keyToHex(blockKeys(tokens, scope, tokens.length)[0]);
}
