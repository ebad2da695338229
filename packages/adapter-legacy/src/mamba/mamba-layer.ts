import type { BufferConfig, LayerConfig, ReusePolicy } from '@bufferwise/core-policy';
import { type Mamba2Shape, mamba2Layout, type ReplayRing, ssmRingWords } from '@bufferwise/gpu-kernels';

/** Roles of a Mamba-2 layer's buffers. The last one exists where there is a ring. */
export type LegacyMambaRole = 'ssm_state' | 'conv_state' | 'replay_ring';

/** One Mamba-2 layer of a model. All its buffers have its one policy, the replay ring too. */
export interface LegacyMambaLayer extends Readonly<Mamba2Shape> {
  readonly layerId: number;
  /** Of the whole layer. Default `required`. */
  readonly reusePolicy?: ReusePolicy;
  /** By role: buffers of different groups never share a slot. Default of the ring: `replay_ring`, as it must not share one with the state. */
  readonly coalescingGroups?: Readonly<Partial<Record<LegacyMambaRole, string>>>;
}

/** Rows of a page of the convolution's tail: with a ring as many more as a step may take back. */
export function tailRows({ convWidth }: Mamba2Shape, ring: ReplayRing | undefined): number {
  return convWidth - 1 + (ring?.maxTokens ?? 0);
}

/**
 * What a layer is in the config of a manager.
 *
 * @throws {KernelError} `kernel-dispatch` for a shape that the kernels do not serve, `kernel-layout` for a ring that is too short
 */
export function mambaLayerConfig(layer: LegacyMambaLayer, ring: ReplayRing | undefined): LayerConfig {
  const { layerId, reusePolicy, coalescingGroups = {} } = layer;
  const { stateWords, numChannels } = mamba2Layout(layer);
  const buffer = (role: LegacyMambaRole, words: number): BufferConfig => {
    const coalescingGroup = coalescingGroups[role] ?? (role === 'replay_ring' ? role : undefined);
    return { role, size: 4 * words, ...(coalescingGroup === undefined ? {} : { coalescingGroup }) };
  };
  return {
    type: 'ssm',
    layerId,
    ...(reusePolicy === undefined ? {} : { reusePolicy }),
    buffers: [
      buffer('ssm_state', stateWords),
      buffer('conv_state', tailRows(layer, ring) * numChannels),
      ...(ring === undefined ? [] : [buffer('replay_ring', ssmRingWords(layer, ring))]),
    ],
  };
}
