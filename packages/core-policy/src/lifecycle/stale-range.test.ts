import { readVectors } from '@bufferwise-internal/test-kit';
import { describe, expect, test } from 'vitest';
import type { Lifecycle } from './lifecycle.ts';
import { staleRange } from './stale-range.ts';

interface RangeCase {
  tokensPerBlock: number;
  lifecycle: Lifecycle;
  historyLength: number;
  stale: [number, number];
}

describe('stale range', () => {
  test('agrees with every published vector', () => {
    for (const { lifecycle, historyLength, tokensPerBlock, stale } of readVectors<RangeCase>('ranges')) {
      expect(staleRange(lifecycle, historyLength, tokensPerBlock)).toEqual({ begin: stale[0], end: stale[1] });
    }
  });
});
