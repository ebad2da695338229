import { createColors } from 'picocolors';
import { describe, expect, it } from 'vitest';
import type { DemoResult } from './run-requests.ts';
import type { SecondAnswer } from './second-process.ts';
import { type DemoFigures, judge } from './verdict.ts';

const TOKENS = [1, 2, 3];
const result = (name: string, computedTokens: number, tokens = TOKENS) =>
  ({ name, tokens, report: { promptTokens: 110, computedTokens } }) as DemoResult;
const answer = (more: Partial<SecondAnswer> = {}): SecondAnswer => ({
  text: '',
  tokens: TOKENS,
  reusedTokens: 96,
  computedTokens: 14,
  firstTokenMs: 1,
  groups: [],
  ...more,
});
const good: DemoFigures = {
  withReuse: [result('A', 110), result('B', 10), result('A, turn 2', 5)],
  withoutReuse: [result('A', 110), result('B', 110), result('A, turn 2', 110)],
  second: answer(),
  // 96 in whole blocks.
  sharedTokens: 100,
  tokensPerBlock: 16,
};
const verdict = (more: Partial<DemoFigures> = {}) => judge({ ...good, ...more }, createColors(false));

describe('the demo', () => {
  it('passes when B computed the rest and all texts are the same, also that of the second process', () => {
    expect(verdict().passed).toBe(true);
    expect(verdict().text).toContain('The second process began with 96 tokens that the first one had left in the store');
  });

  it.each<[string, Partial<DemoFigures>, RegExp]>([
    ['B computed more', { withReuse: [result('A', 110), result('B', 11), result('A, turn 2', 5)] }, /B put 11 tokens/],
    [
      'a text differs',
      { withoutReuse: [...good.withoutReuse.slice(0, 2), result('A, turn 2', 110, [9])] },
      /differ .*: A, turn 2/,
    ],
    ['the second process was not warm', { second: answer({ reusedTokens: 80 }) }, /found 80 tokens in the store; .* has 96/],
    ['it answered something else', { second: answer({ tokens: [1, 2, 4] }) }, /with another text/],
    ['it answered less', { second: answer({ tokens: [1, 2] }) }, /with another text/],
  ])('fails when %s', (_, more, words) => {
    expect(verdict(more).passed).toBe(false);
    expect(verdict(more).text).toMatch(words);
  });
});
