import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { slidingWindow } from '../lifecycle/lifecycle.ts';
import { staleEnd } from '../lifecycle/stale-range.ts';
import { presetLayers } from './preset-layers.ts';

/** A model of windowed and full layers, bottom first. */
const split = (isWindowed: readonly boolean[], windowSize: number, tokensPerBlock: number) =>
  presetLayers(
    {
      model_type: 'gpt_oss',
      num_hidden_layers: isWindowed.length,
      num_attention_heads: 1,
      head_dim: 1,
      sliding_window: windowSize,
      layer_types: isWindowed.map((windowed) => (windowed ? 'sliding_attention' : 'full_attention')),
    },
    { tokensPerBlock, variant: 'split' },
  ).savings[0];

/**
 * The slow way: follows every token that a continuation at `endpoint` reads, from the top layer to the embedding, and counts the
 * tokens from the first one on. Layers without a window have their pages, so they read nothing of what has to be made again.
 */
function followed(isWindowed: readonly boolean[], windowSize: number, tokensPerBlock: number, endpoint: number) {
  const firstLive = staleEnd(slidingWindow(windowSize), endpoint, tokensPerBlock) * tokensPerBlock;
  let outputs = new Set<number>(); // tokens whose output of the layer is needed
  for (const windowed of [...isWindowed].reverse()) {
    const inputs = new Set(outputs);
    if (windowed) {
      for (let token = firstLive; token < endpoint; token++) inputs.add(token);
      for (const token of outputs) {
        for (let seen = Math.max(0, token - windowSize + 1); seen < token; seen++) inputs.add(seen);
      }
    }
    outputs = inputs;
  }
  const first = Math.min(endpoint, ...outputs);
  return { recomputed: endpoint - first, rewritten: endpoint - Math.min(firstLive, endpoint) };
}

describe('what it takes to have windows again', () => {
  test.each([
    ['one layer: its window', [true, false], 5, 1, 4, 4],
    ['two layers: a window more', [true, true, false], 5, 1, 8, 4],
    ['layers without a window add nothing', [false, true, false, false, true, false], 5, 1, 8, 4],
    ['a window of one token reads no other', [true, true, false], 1, 1, 0, 0],
    ['the block that the window begins in comes along', [true, true, false], 5, 4, 11, 7],
  ])('%s', (_, isWindowed, windowSize, tokensPerBlock, recomputed, rewritten) => {
    expect(split(isWindowed, windowSize, tokensPerBlock)).toMatchObject({
      recomputedTokens: recomputed,
      rewrittenTokens: rewritten,
    });
  });

  test('is never more than the preset says, and at some endpoint as much', () => {
    const stack = fc
      .array(fc.boolean(), { minLength: 2, maxLength: 6 })
      .filter((isWindowed) => isWindowed.includes(true) && isWindowed.includes(false));
    const upTo = (max: number) => fc.integer({ min: 1, max });
    fc.assert(
      fc.property(stack, upTo(6), upTo(5), (isWindowed, windowSize, tokensPerBlock) => {
        const said = split(isWindowed, windowSize, tokensPerBlock);
        const far = said.recomputedTokens + 2 * tokensPerBlock;
        const found = Array.from({ length: tokensPerBlock }, (_, more) =>
          followed(isWindowed, windowSize, tokensPerBlock, far + more),
        );
        expect(Math.max(...found.map(({ recomputed }) => recomputed))).toBe(said.recomputedTokens);
        expect(Math.max(...found.map(({ rewritten }) => rewritten))).toBe(said.rewrittenTokens);
      }),
    );
  });
});
