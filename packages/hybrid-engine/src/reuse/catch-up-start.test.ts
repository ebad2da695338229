import { describe, expect, it } from 'vitest';
import { catchUpStart, type LayerHistory } from './catch-up-start.ts';

const full = (missing = false): LayerHistory => ({ kind: 'attention', windowSize: null, missing, liveFrom: 0 });
const window = (windowSize: number, liveFrom: number, missing: boolean): LayerHistory => ({
  kind: 'attention',
  windowSize,
  missing,
  liveFrom,
});
const state = (more: Partial<Extract<LayerHistory, { kind: 'ssm' }>> = {}): LayerHistory => ({
  kind: 'ssm',
  state: 'none',
  tail: 'none',
  tailTokens: 3,
  ...more,
});

describe('a second run begins', () => {
  it.each<[string, LayerHistory[], number]>([
    ['at the match when nothing is missing', [state(), full(), window(16, 80, false)], 100],
    ['where the window is live, when one window on the bottom is missing', [window(16, 80, true), full()], 80],
    ['one window earlier for each window below', [window(16, 80, true), full(), window(16, 80, true)], 65],
    ['two windows earlier for a window above two others', [window(16, 80, true), window(8, 88, false), window(16, 80, true)], 58],
    ['not earlier for windows that are there', [window(16, 80, false), full(), window(16, 80, true)], 80],
    ['at the first token when keys of all tokens are missing', [window(16, 80, false), full(true)], 0],
    ['before the match when others have an earlier state', [state({ state: 'later' }), full()], 99],
    ['at the first token when nobody keeps the state', [state({ state: 'always' })], 0],
    ['as many tokens earlier as the convolution looks back', [state({ tail: 'always' })], 97],
    ['at the first token when that is above a tail that is missing', [state({ tail: 'always' }), state({ tail: 'always' })], 0],
    ['where the window is live, above state that is there', [state(), window(16, 80, true), full()], 80],
    [
      'at the first token for a window above state above a missing window',
      [window(8, 88, true), state(), window(16, 80, true)],
      0,
    ],
    ['at the first token for state above a missing window', [window(8, 88, true), state({ state: 'later' })], 0],
    ['at the first token when the windows reach further back', [window(64, 32, true), window(64, 32, true)], 0],
  ])('%s', (_, layers, start) => {
    expect(catchUpStart(layers, 100)).toBe(start);
  });
});
