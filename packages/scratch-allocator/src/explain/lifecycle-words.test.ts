import { fullAttention, slidingWindow, ssmState } from '@bufferwise/core-policy';
import { expect, it } from 'vitest';
import { lifecycleWords } from './lifecycle-words.ts';

it('says what is seen: window, sinks, sparsity group or state', () => {
  expect(lifecycleWords(fullAttention())).toBe('attention to every token');
  expect(lifecycleWords(fullAttention({ sparsityGroup: 'top "k"' }))).toBe(
    'attention to every token, sparsity group "top \\"k\\""',
  );
  expect(lifecycleWords(slidingWindow(1024))).toBe('attention to the last 1,024 tokens');
  expect(lifecycleWords(slidingWindow(1, { numSinkBlocks: 1 }))).toBe('attention to the last token and the first block');
  expect(lifecycleWords(slidingWindow(8, { numSinkBlocks: 2, sparsityGroup: 's' }))).toBe(
    'attention to the last 8 tokens and the first 2 blocks, sparsity group "s"',
  );
  expect(lifecycleWords(ssmState('private'))).toBe('recurrent state');
});
