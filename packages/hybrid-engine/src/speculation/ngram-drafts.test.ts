import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ngramDrafts } from './ngram-drafts.ts';

const drafts = (tokens: number[], maxDrafts: number, more = {}) =>
  Array.from(ngramDrafts(Uint32Array.from(tokens), tokens.length, { maxDrafts, ...more }));

describe('drafts', () => {
  test.each([
    ['are what came behind the ending when it was said before', [1, 2, 3, 4, 5, 1, 2, 3], 2, [4, 5]],
    ['are of the longest ending', [9, 3, 7, 2, 3, 8, 2, 3], 1, [8]],
    ['are of its last place', [2, 3, 7, 2, 3, 8, 2, 3], 1, [8]],
    ['end where the sequence does', [4, 5, 4], 8, [5, 4]],
    ['are none when nothing was said twice', [1, 2, 3], 4, []],
    ['are none when none are wanted', [1, 1, 1], 0, []],
    ['are none of one token', [1], 4, []],
  ])('%s', (_, tokens, maxDrafts, expected) => {
    expect(drafts(tokens, maxDrafts)).toEqual(expected);
  });

  test('are none of endings that are too short', () => {
    expect(drafts([1, 2, 1], 2, { minNgram: 2 })).toEqual([]);
  });

  test('always continue a place where the last tokens stood before', () => {
    const anyTokens = fc.array(fc.nat(2), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(anyTokens, fc.nat(6), (tokens, maxDrafts) => {
        const guessed = drafts(tokens, maxDrafts);
        expect(guessed.length).toBeLessThanOrEqual(maxDrafts);
        if (guessed.length === 0) return;
        const run = [tokens.at(-1), ...guessed].join();
        const windows = tokens.map((_, at) => tokens.slice(at, at + guessed.length + 1).join());
        expect(windows).toContain(run);
      }),
    );
  });
});
