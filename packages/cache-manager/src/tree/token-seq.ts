import { TokenError } from '../errors/token-error.ts';
import { grownColumn } from '../columns.ts';

/** Identity of one piece of non-text content: 32 bytes, for instance its SHA-256. Stands where the first placeholder token would. */
export type MultimodalDigest = Uint8Array;

/** Tokens as callers hold them: ids are whole numbers from 0 to 2^32 - 1. */
export type TokenSeq = ArrayLike<number> | readonly (number | MultimodalDigest)[];

const DIGEST_BYTES = 32;
const MAX_TOKEN = 0xffffffff;

/**
 * A checked, growing run of tokens, owned by one request or one call.
 *
 * A digest is stored as its first four bytes among the ids, and whole in `digests` by position, so that comparing ids
 * first is cheap and comparing digests last is exact.
 */
export class TokenBuffer {
  values = new Uint32Array(16);
  length = 0;
  digests: Map<number, MultimodalDigest> | null = null;

  static from(tokens: TokenSeq): TokenBuffer {
    const buffer = new TokenBuffer();
    buffer.append(tokens);
    return buffer;
  }

  /** @throws {TokenError} when an entry is neither a token id nor a digest; nothing was appended. */
  append(tokens: TokenSeq): void {
    const count = tokens.length;
    for (let i = 0; i < count; i++) checkToken(tokens[i], i);
    if (this.length + count > this.values.length) {
      this.values = grownColumn(this.values, Math.max(this.values.length * 2, this.length + count));
    }
    for (let i = 0; i < count; i++) {
      const token = tokens[i] as number | MultimodalDigest;
      if (typeof token === 'number') this.values[this.length + i] = token;
      else this.#appendDigest(this.length + i, token);
    }
    this.length += count;
  }

  /** Forgets everything from `length` on. */
  truncate(length: number): void {
    if (this.digests !== null) for (const position of this.digests.keys()) if (position >= length) this.digests.delete(position);
    this.length = length;
  }

  #appendDigest(position: number, digest: MultimodalDigest): void {
    this.values[position] = new DataView(digest.buffer, digest.byteOffset).getUint32(0, true);
    this.digests ??= new Map();
    this.digests.set(position, digest.slice());
  }
}

function checkToken(token: unknown, position: number): void {
  if (typeof token === 'number') {
    if (Number.isInteger(token) && token >= 0 && token <= MAX_TOKEN) return;
    throw new TokenError('invalid-token', position, `token ${position} is ${token}; token ids are whole numbers from 0 to ${MAX_TOKEN}`);
  }
  if (token instanceof Uint8Array && token.length === DIGEST_BYTES) return;
  throw new TokenError('invalid-digest', position, `token ${position} is neither a number nor a digest of ${DIGEST_BYTES} bytes (Uint8Array)`);
}

/** 0 when two digests, or their absence, are the same; else which stands first. None stands before any. */
export function compareDigests(a: MultimodalDigest | undefined, b: MultimodalDigest | undefined): number {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? -1 : 1;
  for (let i = 0; i < DIGEST_BYTES; i++) if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1;
  return 0;
}
