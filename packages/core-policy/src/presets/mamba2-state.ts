import { checkMultiple, type ModelFields } from './model-fields.ts';
import type { RecurrentPart, ValueBytes } from './model-shape.ts';

/** Sizes of a Mamba-2 layer. */
export interface Mamba2Sizes {
  numHeads: number;
  headDim: number;
  /** Groups of heads that share their input and output maps. */
  numGroups: number;
  stateSize: number;
  /** Taps of the causal convolution. */
  convWidth: number;
}

/** Notes heads that do not divide into their groups; `headsKey` is where the heads came from. */
export function checkGroups(model: ModelFields, headsKey: string, sizes: Mamba2Sizes): void {
  checkMultiple(model, headsKey, sizes.numHeads, sizes.numGroups, 'the number of groups');
}

/**
 * What a Mamba-2 layer keeps: `ssm_state` `[numHeads, headDim, stateSize]`, and `conv_state`
 * `[convWidth - 1, numHeads × headDim + 2 × numGroups × stateSize]`, the inputs that the convolution of the next token still
 * reads.
 *
 * Its ring keeps of each token `replay_x` `[numHeads, headDim]` and `replay_b` `[numGroups, stateSize]` as keys are stored, and
 * `replay_dt` `[numHeads]` in f32.
 * @see vllm-project/vllm mamba_utils.py, the Mamba-2 shapes and those of its replay ring
 * @see NVIDIA/TensorRT-LLM mamba_cache_manager_v2.py: one row less than the convolution has taps
 */
export function mamba2Part(modelLayer: number, sizes: Mamba2Sizes, bytes: ValueBytes): RecurrentPart {
  const { numHeads, headDim, numGroups, stateSize, convWidth } = sizes;
  const numChannels = numHeads * headDim + 2 * numGroups * stateSize;
  return {
    kind: 'recurrent',
    part: 'mamba2',
    modelLayer,
    states: [
      { role: 'ssm_state', bytes: numHeads * headDim * stateSize * bytes.state },
      { role: 'conv_state', bytes: (convWidth - 1) * numChannels * bytes.conv },
    ],
    replayRows: [
      { role: 'replay_x', bytes: numHeads * headDim * bytes.kv },
      { role: 'replay_dt', bytes: numHeads * 4 },
      { role: 'replay_b', bytes: numGroups * stateSize * bytes.kv },
    ],
  };
}
