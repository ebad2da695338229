import { describe, expect, test } from 'vitest';
import { TokenError } from '../errors/token-error.ts';
import { compareDigests, TokenBuffer, type TokenSeq } from './token-seq.ts';

const digest = (...bytes: number[]) => Uint8Array.from({ length: 32 }, (_, i) => bytes[i] ?? 0);
const valuesOf = (buffer: TokenBuffer) => [...buffer.values.subarray(0, buffer.length)];

describe('tokens', () => {
  test.each<[string, TokenSeq]>([
    ['a list', [0, 1, 0xffffffff]],
    ['a Uint32Array', Uint32Array.of(0, 1, 0xffffffff)],
    ['anything with a length and numbers', { length: 3, 0: 0, 1: 1, 2: 0xffffffff }],
  ])('come as %s', (_, tokens) => {
    expect(valuesOf(TokenBuffer.from(tokens))).toEqual([0, 1, 0xffffffff]);
    expect(valuesOf(TokenBuffer.borrow(tokens))).toEqual([0, 1, 0xffffffff]);
  });

  test('come as an Int32Array, as long as none is negative', () => {
    expect(valuesOf(TokenBuffer.from(Int32Array.of(3, 4)))).toEqual([3, 4]);
    expect(() => TokenBuffer.from(Int32Array.of(3, -4))).toThrow(TokenError);
  });

  test('may be none', () => {
    expect(TokenBuffer.from([]).length).toBe(0);
  });

  test('are appended, however many there are already', () => {
    const buffer = TokenBuffer.from([1]);
    for (let i = 2; i < 100; i++) buffer.append([i]);
    expect(valuesOf(buffer)).toEqual(Array.from({ length: 99 }, (_, i) => i + 1));
  });

  test('are copied when they are kept, and borrowed for a look', () => {
    const tokens = Uint32Array.of(1, 2);
    const kept = TokenBuffer.from(tokens);
    const borrowed = TokenBuffer.borrow(tokens);
    const prefix = borrowed.prefix(2);
    tokens[0] = 9;
    expect([kept, borrowed, prefix].map((buffer) => buffer.values[0])).toEqual([1, 9, 1]);
  });

  test('are cut to a beginning with a buffer and digests of its own', () => {
    const whole = TokenBuffer.from([1, digest(7), 3, digest(8)]);
    const prefix = whole.prefix(3);
    prefix.append([digest(9)]);
    expect([prefix.length, prefix.digests?.size, whole.digests?.size]).toEqual([4, 2, 2]);
    expect([whole.digests?.get(3)?.[0], prefix.digests?.get(3)?.[0]]).toEqual([8, 9]);
    expect(whole.prefix(1).digests).toBeNull();
    const long = TokenBuffer.from(Array.from({ length: 50 }, (_, i) => i));
    expect(valuesOf(long.prefix(40))).toEqual(valuesOf(long).slice(0, 40));
    expect(long.prefix(0).length).toBe(0);
  });
});

describe('a digest', () => {
  test('stands for a token by its first four bytes, and whole beside them', () => {
    const buffer = TokenBuffer.from([5, digest(1, 2, 3, 4, 5)]);
    expect(valuesOf(buffer)).toEqual([5, 0x04030201]);
    expect(buffer.digests?.get(1)).toEqual(digest(1, 2, 3, 4, 5));
  });

  test('is read from where it lies in a larger buffer', () => {
    const bytes = new Uint8Array(64).fill(1);
    bytes.fill(2, 32);
    expect(TokenBuffer.from([bytes.subarray(32)]).values[0]).toBe(0x02020202);
  });

  test('is not changed by what the caller does to it later, also when its slice is a view', () => {
    class View extends Uint8Array {
      override slice(begin?: number, end?: number): Uint8Array<ArrayBuffer> {
        return this.subarray(begin, end) as Uint8Array<ArrayBuffer>;
      }
    }
    const given = View.from(digest(1));
    const buffer = TokenBuffer.from([given]);
    given.fill(9);
    expect(buffer.digests?.get(0)).toEqual(digest(1));
  });

  test('is ordered by its bytes, behind having none', () => {
    expect(compareDigests(undefined, undefined)).toBe(0);
    expect(compareDigests(digest(1), digest(1))).toBe(0);
    expect(compareDigests(undefined, digest())).toBeLessThan(0);
    expect(compareDigests(digest(), undefined)).toBeGreaterThan(0);
    expect(compareDigests(digest(1, 1), digest(1, 2))).toBeLessThan(0);
    expect(compareDigests(digest(2), digest(1, 2))).toBeGreaterThan(0);
  });
});

describe('what is no token', () => {
  test.each<[string, unknown]>([
    ['a negative number', -1],
    ['a fraction', 0.5],
    ['a number beyond 32 bits', 2 ** 32],
    ['NaN', Number.NaN],
  ])('%s is refused with its position', (_, token) => {
    expect(refusal([1, token])).toMatchObject({ code: 'invalid-token', position: 1 });
  });

  test.each<[string, unknown]>([
    ['31 bytes', new Uint8Array(31)],
    ['33 bytes', new Uint8Array(33)],
    ['a text', '1'],
    ['a bigint', 1n],
    ['nothing', undefined],
    ['a hole read as null', null],
    ['32 words', new Uint32Array(32)],
  ])('%s is refused with its position', (_, token) => {
    expect(refusal([1, 2, token])).toMatchObject({ code: 'invalid-digest', position: 2 });
  });

  test('appends nothing, not even the good tokens before it', () => {
    const buffer = TokenBuffer.from([1, digest(1)]);
    expect(() => buffer.append([2, digest(2), -3])).toThrow(TokenError);
    expect([buffer.length, buffer.digests?.size]).toEqual([2, 1]);
    buffer.append([4]);
    expect([valuesOf(buffer).at(-1), buffer.digests?.has(2)]).toEqual([4, false]);
  });
});

function refusal(tokens: readonly unknown[]): unknown {
  try {
    return TokenBuffer.from(tokens as TokenSeq);
  } catch (error) {
    return error;
  }
}
