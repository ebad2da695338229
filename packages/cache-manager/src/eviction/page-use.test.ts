import { expect, test } from 'vitest';
import { ANSWER, answerLengthOf, NUM_PARTS, NUM_USES, PASSED, PROMPT_BODY, PROMPT_END, pageUse, partOf } from './page-use.ts';

test('part and length are read back from a use, and every pair has its own', () => {
  const uses = new Set<number>();
  for (const part of [PROMPT_BODY, PROMPT_END, ANSWER, PASSED]) {
    [0, 15, 16, 63, 64, 255, 256, 1023, 1024, 1_000_000].forEach((tokens, i) => {
      const use = pageUse(part, tokens);
      expect([partOf(use), answerLengthOf(use)]).toEqual([part, Math.floor(i / 2)]);
      uses.add(use);
    });
  }
  expect([uses.size, Math.max(...uses)]).toEqual([NUM_USES, NUM_USES - 1]);
  expect(NUM_PARTS).toBe(4);
});
