import type { RecurrentPart, ValueBytes } from './model-shape.ts';

/** Sizes of a Mamba-1 layer. */
export interface Mamba1Sizes {
  /** Inner channels. */
  numChannels: number;
  stateSize: number;
  /** Taps of the causal convolution. */
  convWidth: number;
}

/**
 * What a Mamba-1 layer keeps: `ssm_state` `[numChannels, stateSize]`, and `conv_state` `[convWidth - 1, numChannels]`, the inputs
 * that the convolution of the next token still reads.
 *
 * No ring of inputs: time step and input have a value for each channel, so a dozen tokens of them outweigh the state.
 * @see vllm-project/vllm mamba_utils.py, the Mamba-1 shapes
 */
export function mamba1Part(modelLayer: number, sizes: Mamba1Sizes, bytes: ValueBytes): RecurrentPart {
  return {
    kind: 'recurrent',
    part: 'mamba1',
    modelLayer,
    states: [
      { role: 'ssm_state', bytes: sizes.numChannels * sizes.stateSize * bytes.state },
      { role: 'conv_state', bytes: (sizes.convWidth - 1) * sizes.numChannels * bytes.conv },
    ],
    replayRows: [],
  };
}
