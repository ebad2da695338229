/** Where a request can have memory of its past from that it does not hold. */
export type Lack =
  /** It holds it, or does not need it. */
  | 'none'
  /** Others may have published it for an earlier point of the prefix. */
  | 'later'
  /** Nobody keeps it for others. */
  | 'always';

/** What of a layer's memory a request lacks at its match, and how far the layer looks back. */
export type LayerHistory =
  | {
      readonly kind: 'attention';
      /** Tokens that a query sees, itself included; null = all. */
      readonly windowSize: number | null;
      /** Whether the request lacks keys or values of the tokens that are live at the match. */
      readonly missing: boolean;
      /** The first token whose keys and values are live at the match: the beginning of a block. */
      readonly liveFrom: number;
    }
  | {
      readonly kind: 'ssm';
      readonly state: Lack;
      /** The last inputs of the convolution. */
      readonly tail: Lack;
      /** How many these are. */
      readonly tailTokens: number;
    };

/**
 * The last token at which a second run may begin, so that all that a request lacks at `matched` comes out of it exactly as if the
 * whole prefix had been run. It begins with all that others keep for the point where it begins.
 *
 * A token's output of a layer is exact when its input is and all that it looks back at. Full attention looks back at pages that
 * are there. A window that lacks what came before the beginning is filled with exact keys one window later, so each such layer, and
 * each windowed layer above one, delays what is exact by `windowSize - 1` tokens. State that was fed one inexact token stays
 * inexact: above such a layer nothing will do but the beginning of the sequence.
 *
 * @param layers  bottom layer first
 * @param matched tokens
 * @returns `matched` when nothing is missing; 0 when only the whole prefix will do
 */
export function catchUpStart(layers: readonly LayerHistory[], matched: number): number {
  let latest = matched;
  /** Tokens behind the beginning from which on the input of the layer is exact. */
  let delay = 0;
  for (const layer of layers) {
    if (layer.kind === 'attention') {
      const { windowSize, missing, liveFrom } = layer;
      if (missing) latest = Math.min(latest, liveFrom - delay);
      if (windowSize === null) delay += missing ? Number.POSITIVE_INFINITY : 0;
      else if (missing || delay > 0) delay += windowSize - 1;
      continue;
    }
    const { state, tail, tailTokens } = layer;
    if (state !== 'none') latest = state === 'later' && delay === 0 ? Math.min(latest, matched - 1) : 0;
    if (tail !== 'none') latest = Math.min(latest, tail === 'later' && delay === 0 ? matched - 1 : matched - tailTokens - delay);
    if (delay > 0 || tail === 'always') delay = Number.POSITIVE_INFINITY;
  }
  return Math.max(0, latest);
}
