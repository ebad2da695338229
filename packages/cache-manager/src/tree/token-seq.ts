import type { ColumnPool } from '../column-pool.ts';
import { grownRequestLength } from '../columns.ts';
import { TokenError } from '../errors/token-error.ts';

/** Identity of one piece of non-text content: 32 bytes, for instance its SHA-256. Stands where the first placeholder token would. */
export type MultimodalDigest = Uint8Array;

/** Tokens as callers hold them: ids are whole numbers from 0 to 2^32 - 1. */
export type TokenSeq = ArrayLike<number> | readonly (number | MultimodalDigest)[];

const DIGEST_BYTES = 32;
const FEW_TOKENS = 16;
const NO_VALUES = new Uint32Array(0);
export const MAX_TOKEN = 0xffffffff;

/**
 * A checked, growing run of tokens, owned by one request or one call.
 *
 * A digest is stored as its first four bytes among the ids, and whole in `digests` by position, so that comparing ids
 * first is cheap and comparing digests last is exact.
 */
export class TokenBuffer {
  values: Uint32Array = NO_VALUES;
  length = 0;
  /** Tokens that there are likely to be in the end; there is room for them as soon as room is made at all. */
  expectedLength = 0;
  digests: Map<number, MultimodalDigest> | null = null;

  readonly #pool: ColumnPool | null;

  /** @param pool where tables of tokens come from and go to; null: from the process */
  constructor(pool: ColumnPool | null = null) {
    this.#pool = pool;
  }

  static from(tokens: TokenSeq): TokenBuffer {
    const buffer = new TokenBuffer();
    buffer.append(tokens);
    return buffer;
  }

  /** For a look at tokens that ends before the caller gets control again: a `Uint32Array` is borrowed, all else is copied. */
  static borrow(tokens: TokenSeq): TokenBuffer {
    if (!(tokens instanceof Uint32Array)) return TokenBuffer.from(tokens);
    const buffer = new TokenBuffer();
    buffer.values = tokens;
    buffer.length = tokens.length;
    return buffer;
  }

  /** A buffer of its own with the first `length` tokens, and room for as many as are expected as soon as it has any. */
  prefix(length: number, expectedLength = 0, pool: ColumnPool | null = this.#pool): TokenBuffer {
    const buffer = new TokenBuffer(pool);
    buffer.expectedLength = expectedLength;
    if (length > 0) buffer.append(this.values.subarray(0, length));
    this.digests?.forEach((digest, position) => {
      if (position >= length) return;
      buffer.digests ??= new Map();
      buffer.digests.set(position, digest);
    });
    return buffer;
  }

  /** @throws {TokenError} when an entry is neither a token id nor a digest; nothing was appended. */
  append(tokens: TokenSeq): void {
    const count = tokens.length;
    const begin = this.length;
    if (begin + count > this.values.length) this.#grow(begin + count);
    const { values } = this;
    if (tokens instanceof Uint32Array) {
      // A decode step brings one token, for which `set` has much to check.
      if (count > FEW_TOKENS) values.set(tokens, begin);
      else for (let i = 0; i < count; i++) values[begin + i] = tokens[i];
    } else {
      let digests: Map<number, MultimodalDigest> | null = null;
      for (let i = 0; i < count; i++) {
        const token = tokens[i];
        if (typeof token === 'number') {
          values[begin + i] = token;
          if (values[begin + i] !== token) throw badToken(token, i);
          continue;
        }
        const digest = copyOfDigest(token, i);
        values[begin + i] = new DataView(digest.buffer).getUint32(0, true);
        digests ??= new Map();
        digests.set(begin + i, digest);
      }
      this.#adopt(digests);
    }
    this.length += count;
  }

  /** Gives the memory back. The buffer is empty, and may be filled anew. */
  clear(): void {
    this.#pool?.give(this.values);
    this.values = NO_VALUES;
    this.length = 0;
    this.digests = null;
  }

  #grow(needed: number): void {
    const length = grownRequestLength(this.values.length, needed, this.expectedLength);
    const grown = this.#pool?.take(length) ?? new Uint32Array(length);
    grown.set(this.length === this.values.length ? this.values : this.values.subarray(0, this.length));
    this.#pool?.give(this.values);
    this.values = grown;
  }

  #adopt(digests: Map<number, MultimodalDigest> | null): void {
    if (this.digests === null) this.digests = digests;
    else if (digests !== null) for (const [position, digest] of digests) this.digests.set(position, digest);
  }
}

function badToken(token: number, position: number): TokenError {
  return new TokenError(
    'invalid-token',
    position,
    `token ${position} is ${token}; token ids are whole numbers from 0 to ${MAX_TOKEN}`,
  );
}

/** Checks a digest, and keeps what the caller may go on to change. Not by `slice`: that of a Node `Buffer` is a view. */
export function copyOfDigest(token: unknown, position: number): MultimodalDigest & { buffer: ArrayBuffer } {
  if (token instanceof Uint8Array && token.length === DIGEST_BYTES) return Uint8Array.from(token);
  throw new TokenError(
    'invalid-digest',
    position,
    `token ${position} is neither a number nor a digest of ${DIGEST_BYTES} bytes (Uint8Array)`,
  );
}

/** 0 when two digests, or their absence, are the same; else which stands first. None stands before any. */
export function compareDigests(a: MultimodalDigest | undefined, b: MultimodalDigest | undefined): number {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? -1 : 1;
  for (let i = 0; i < DIGEST_BYTES; i++) if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1;
  return 0;
}
