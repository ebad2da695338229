import { describe, expect, it } from 'vitest';
import { LogitEdits } from './logit-edits.ts';
import { topTokens } from './top-tokens.ts';

describe('the most likely tokens', () => {
  const logits = Float32Array.of(0, 2, 1, 2, Number.NEGATIVE_INFINITY);

  it('come best first, of equals the lowest id first', () => {
    expect(topTokens(logits, 3).map(({ token }) => token)).toEqual([1, 3, 2]);
    expect(topTokens(logits, 9).map(({ token }) => token)).toEqual([1, 3, 2, 0, 4]);
    expect(topTokens(logits, 0)).toEqual([]);
  });

  it('have probabilities that make one together', () => {
    const sum = topTokens(logits, 5).reduce((total, { logProbability }) => total + Math.exp(logProbability), 0);
    expect(sum).toBeCloseTo(1, 12);
  });
});

describe('edits of logits', () => {
  const none = { bias: new Map<number, number>(), presencePenalty: 0, frequencyPenalty: 0 };

  it('add biases and take off what was said, once and each time', () => {
    const edits = new LogitEdits({ bias: new Map([[2, 5]]), presencePenalty: 1, frequencyPenalty: 0.5 });
    for (const token of [0, 0, 1]) edits.said(token);
    const logits = new Float32Array(4);
    edits.apply(logits);
    expect([...logits]).toEqual([-2, -1.5, 5, 0]);
  });

  it('are asked for by any of the three', () => {
    expect(LogitEdits.areAsked(none)).toBe(false);
    expect(LogitEdits.areAsked({ ...none, bias: new Map([[1, 1]]) })).toBe(true);
    expect(LogitEdits.areAsked({ ...none, presencePenalty: -1 })).toBe(true);
    expect(LogitEdits.areAsked({ ...none, frequencyPenalty: 1 })).toBe(true);
  });
});
