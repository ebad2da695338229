import type { ModelShape } from './model-shape.ts';
import type { ResolvedPresetOptions } from './preset-options.ts';

/** What a variant does with the buffers that could be had again. */
export interface SplitPolicies {
  /** Whether layers with a window are optional. */
  readonly windowsOptional: boolean;
  /** Whether rings of replay inputs are private. */
  readonly ringsPrivate: boolean;
  /** Why something that could be thought cheap stays required, in sentences. */
  readonly notes: readonly string[];
}

/**
 * Decides what a split variant splits off, and says why the rest stays.
 *
 * Windows are rebuilt by running the last tokens through the model again. That takes a layer without a window to hold the match
 * up, and no recurrent layer: its state is that of the end of the match, and cannot be taken back to where rebuilding starts.
 */
export function splitPolicies(shape: ModelShape, options: ResolvedPresetOptions): SplitPolicies {
  if (options.variant === 'whole') return { windowsOptional: false, ringsPrivate: false, notes: [] };
  const attention = shape.parts.filter((part) => part.kind === 'attention');
  const recurrent = shape.parts.filter((part) => part.kind === 'recurrent');
  const numWindowed = attention.filter((part) => part.windowSize !== undefined).length;
  const windowsOptional = numWindowed > 0 && numWindowed < attention.length && recurrent.length === 0;
  const ringsPrivate = options.replayTokens > 0 && recurrent.some((part) => part.replayRows.length > 0);
  const notes: string[] = [];
  if (windowsOptional) notes.push(WINDOWS_OPTIONAL);
  if (numWindowed > 0 && !windowsOptional) notes.push(recurrent.length > 0 ? WINDOWS_BESIDE_STATE : WINDOWS_ALONE);
  if (numWindowed === 0 && recurrent.length === 0) notes.push(FULL_ATTENTION);
  if (recurrent.length > 0) notes.push(CONVOLUTION);
  if (recurrent.some((part) => part.part === 'mamba1')) notes.push(MAMBA1);
  return { windowsOptional, ringsPrivate, notes };
}

const FULL_ATTENTION = 'Nothing is split: full attention reads every token of a match, so each of its pages is required.';
const WINDOWS_OPTIONAL =
  'Optional windows can be selected where a match ends with a block; elsewhere, and where they are lost, they are rebuilt. Pages ' +
  'of layers without a window are shared: rebuilding reads them and does not write them.';
const WINDOWS_ALONE = 'Nothing is split: every layer has a window, and were all of them optional, nothing would hold a match up.';
const WINDOWS_BESIDE_STATE =
  'Windows stay required: rebuilding them starts before the end of the match, and recurrent state cannot be taken back to there.';
const CONVOLUTION =
  'Convolution inputs stay required: making them again takes the recurrent state some tokens before the snapshot, which is gone.';
const MAMBA1 =
  'Mamba-1 has no replay ring: its inputs have one value for each channel, so a dozen tokens of them outweigh the state itself.';
