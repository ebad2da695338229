import { describe, expect, test } from 'vitest';
import { multimodalTokens } from './multimodal-tokens.ts';

const digest = new Uint8Array(32).fill(7);

describe('tokens of a picture', () => {
  test('begin with its digest and go on with placeholders', () => {
    expect(multimodalTokens(1000, digest, 4)).toEqual([digest, 1001, 1002, 1003]);
    expect(multimodalTokens(1000, digest, 1)).toEqual([digest]);
  });

  test('that continue in another call have no digest any more', () => {
    expect(multimodalTokens(1000, digest, 2, 4)).toEqual([1004, 1005]);
    expect([...multimodalTokens(1000, digest, 3), ...multimodalTokens(1000, digest, 2, 3)]).toEqual(
      multimodalTokens(1000, digest, 5),
    );
  });

  test('keep their digest when the caller changes its own', () => {
    const own = digest.slice();
    const tokens = multimodalTokens(1000, own, 2);
    own.fill(0);
    expect(tokens[0]).toEqual(digest);
  });
});

describe('what is refused', () => {
  const refusal = (...args: Parameters<typeof multimodalTokens>) => {
    try {
      multimodalTokens(...args);
      return null;
    } catch (error) {
      return (error as { code: string }).code;
    }
  };

  test('is a digest of another size', () => {
    expect([31, 32, 33].map((size) => refusal(0, new Uint8Array(size), 1))).toEqual(['invalid-digest', null, 'invalid-digest']);
    expect(refusal(0, 'digest' as never, 1)).toBe('invalid-digest');
  });

  test('is a count below one, or a broken one', () => {
    expect([0, -1, 1.5, Number.NaN, 1].map((count) => refusal(0, digest, count))).toEqual([
      ...new Array(4).fill('invalid-token-count'),
      null,
    ]);
  });

  test('is an offset below zero, or a broken one', () => {
    expect([-1, 0.5, 0].map((offset) => refusal(0, digest, 1, offset))).toEqual([
      'invalid-token-count',
      'invalid-token-count',
      null,
    ]);
  });

  test('is an id that is no token id', () => {
    expect([-1, 0.5].map((idOffset) => refusal(idOffset, digest, 1))).toEqual(['invalid-token', 'invalid-token']);
    expect([refusal(2 ** 32 - 2, digest, 2), refusal(2 ** 32 - 2, digest, 3), refusal(2 ** 32 - 2, digest, 1, 2)]).toEqual([
      null,
      'invalid-token',
      'invalid-token',
    ]);
  });
});
