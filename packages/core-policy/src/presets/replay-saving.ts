import type { LayerOrigin, PresetSaving } from './model-preset.ts';
import type { RecurrentPart } from './model-shape.ts';

/** A recurrent part with a ring, and the id of its layer. */
export interface RingLayer {
  readonly origin: LayerOrigin;
  readonly part: RecurrentPart;
}

/**
 * What private rings are worth. A snapshot is the state after exactly so many tokens, so a request that starts from one needs no
 * ring of others.
 *
 * @param rings at least one
 * @param replayTokens tokens of a ring, > 0
 */
export function replaySaving(rings: readonly RingLayer[], replayTokens: number): PresetSaving {
  const rowBytes = rings.reduce((sum, { part }) => sum + part.replayRows.reduce((bytes, row) => bytes + row.bytes, 0), 0);
  const bytesPerSnapshot = rowBytes * replayTokens;
  return {
    buffers: 'replay-ring',
    policy: 'private',
    layerIds: rings.map(({ origin }) => origin.layerId),
    roles: [...new Set(rings.flatMap(({ part }) => part.replayRows.map((row) => row.role)))],
    bytesPerToken: 0,
    bytesPerSnapshot,
    rewrittenTokens: 0,
    recomputedTokens: 0,
    sentence:
      `The replay rings of ${rings.length} layers, ${replayTokens} tokens each, are private: a snapshot carries ` +
      `${bytesPerSnapshot} bytes less, and nothing is computed again, as a snapshot is the state itself and the ring starts ` +
      'empty. Fold the ring into the state before a commit that takes a snapshot.',
  };
}
