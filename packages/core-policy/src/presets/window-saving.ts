import type { LayerOrigin, PresetSaving } from './model-preset.ts';
import type { AttentionPart } from './model-shape.ts';

/** A windowed part and the id of its layer. */
export interface WindowedLayer {
  readonly origin: LayerOrigin;
  readonly part: AttentionPart & { readonly windowSize: number };
}

/**
 * What optional windows are worth, and what it takes to have them again.
 *
 * At most `w - 1` tokens before the next one are in a window of `w`, and pages are written from the start of their block on. To
 * be exact there, a windowed layer needs exact inputs, which the windowed layer below made from tokens up to `w - 1` further
 * back: each layer adds its window to the run. Layers without a window add nothing, as their pages are there.
 *
 * @param windowed at least one, bottom layer first
 * @param tokensPerBlock tokens, > 0
 */
export function windowSaving(windowed: readonly WindowedLayer[], tokensPerBlock: number): PresetSaving {
  const reach = (layer: WindowedLayer) => layer.part.windowSize - 1;
  const inBlock = tokensPerBlock - 1;
  const rewrittenTokens = Math.max(...windowed.map(reach)) + inBlock;
  const recomputedTokens = windowed.reduce((sum, layer) => sum + reach(layer), 0) + inBlock;
  const bytesPerToken = windowed.reduce((sum, { part }) => sum + part.rows.reduce((bytes, row) => bytes + row.bytes, 0), 0);
  return {
    buffers: 'windowed-attention',
    policy: 'optional',
    layerIds: windowed.map(({ origin }) => origin.layerId),
    roles: [...new Set(windowed.flatMap(({ part }) => part.rows.map((row) => row.role)))],
    bytesPerToken,
    bytesPerSnapshot: 0,
    rewrittenTokens,
    recomputedTokens,
    sentence:
      `The windows of ${windowed.length} layers are optional: no match waits for their ${bytesPerToken} bytes a token. A ` +
      `request that does not select them runs at most the last ${recomputedTokens} tokens of the match through the model again, ` +
      `and writes the pages of the last ${rewrittenTokens}. It takes that many because each windowed layer reads back through ` +
      'the one below; a run of one window is faster, and no longer gives the same tokens.',
  };
}
