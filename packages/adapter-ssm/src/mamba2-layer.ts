import type { BufferConfig, ReusePolicy, SsmLayerConfig } from '@bufferwise/core-policy';
import { type Mamba2Shape, mamba2Layout, type ReplayRing, ssmRingWords } from '@bufferwise/gpu-kernels';

/** What a layer keeps: its recurrent state, the last inputs of its convolution, and what its last tokens did to the state. */
export type Mamba2Role = 'ssm_state' | 'conv_state' | 'replay_ring';

/** One Mamba-2 layer of a model. */
export interface Mamba2Layer extends Mamba2Shape {
  readonly layerId: number;
  /**
   * Keeps a ring of so many tokens beside the state: short steps write no state then, and tokens that they wrote can be taken back.
   * Absent = every step writes the state, and nothing can be taken back.
   */
  readonly replay?: Readonly<ReplayRing>;
  /** Policy of state and tail where `policies` names none. Default `required`. */
  readonly reusePolicy?: ReusePolicy;
  /** Policies by role. The ring's is `private` by default: whoever continues from a snapshot begins with an empty ring. */
  readonly policies?: Readonly<Partial<Record<Mamba2Role, ReusePolicy>>>;
}

const WORD = 4;

/** Rows of a page of the tail: what a token looks back at, and with a ring the tokens that may be taken back. */
export function tailRows({ convWidth, replay }: Mamba2Layer): number {
  return convWidth - 1 + (replay?.maxTokens ?? 0);
}

/**
 * The layer as the config of a manager has it.
 *
 * @throws {KernelError} on a shape or a ring that the kernels do not serve
 */
export function mamba2LayerConfig(layer: Mamba2Layer): SsmLayerConfig {
  const { layerId, replay, reusePolicy, policies } = layer;
  const { stateWords, numChannels } = mamba2Layout(layer);
  const buffers: BufferConfig[] = [
    { role: 'ssm_state', size: WORD * stateWords, reusePolicy: policies?.ssm_state },
    { role: 'conv_state', size: WORD * tailRows(layer) * numChannels, reusePolicy: policies?.conv_state },
  ];
  if (replay) {
    buffers.push({
      role: 'replay_ring',
      size: WORD * ssmRingWords(layer, replay),
      reusePolicy: policies?.replay_ring ?? 'private',
      // One dispatch writes states and rings, and WebGPU binds no memory twice for that: they never lie in one pool.
      coalescingGroup: 'replay_ring',
    });
  }
  return { type: 'ssm', layerId, reusePolicy, buffers };
}
