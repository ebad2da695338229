import type { RecurrentPart, ValueBytes } from './model-shape.ts';

/** Sizes of a gated delta net layer. */
export interface GatedDeltaSizes {
  numKeyHeads: number;
  keyDim: number;
  numValueHeads: number;
  valueDim: number;
  /** Taps of the causal convolution. */
  convWidth: number;
}

/**
 * What a gated delta net layer keeps: `ssm_state` `[numValueHeads, valueDim, keyDim]`, and `conv_state`
 * `[convWidth - 1, 2 × numKeyHeads × keyDim + numValueHeads × valueDim]` of queries, keys and values.
 *
 * Its ring keeps of each token `replay_delta` `[numValueHeads, valueDim + keyDim + 1]` in f32: correction, key and decay. The
 * correction was made from the state, so that folding the ring needs no second pass over the model.
 * @see vllm-project/vllm mamba_utils.py, the gated delta net shapes; gdn/recoverssm_gdn.py, the replay record
 */
export function gatedDeltaPart(modelLayer: number, sizes: GatedDeltaSizes, bytes: ValueBytes): RecurrentPart {
  const { numKeyHeads, keyDim, numValueHeads, valueDim, convWidth } = sizes;
  const numChannels = 2 * numKeyHeads * keyDim + numValueHeads * valueDim;
  return {
    kind: 'recurrent',
    part: 'gated-delta-net',
    modelLayer,
    states: [
      { role: 'ssm_state', bytes: numValueHeads * valueDim * keyDim * bytes.state },
      { role: 'conv_state', bytes: (convWidth - 1) * numChannels * bytes.conv },
    ],
    replayRows: [{ role: 'replay_delta', bytes: numValueHeads * (valueDim + keyDim + 1) * 4 }],
  };
}
