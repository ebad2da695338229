import type { ReusePolicy } from '../reuse/reuse-policy.ts';
import type { BufferConfig } from './buffer-config.ts';

/** A layer whose pages hold keys and values (or what stands for them) of runs of tokens. */
export interface AttentionLayerConfig {
  type: 'attention';
  layerId: number;
  buffers: readonly BufferConfig[];
  /** Tokens that a query sees, itself included. Absent = all. */
  slidingWindowSize?: number;
  /** First tokens of the sequence that stay visible in spite of the window. Rounded up to whole blocks. Default 0. */
  numSinkTokens?: number;
  /** Keeps the lifecycles of this layer apart from those of layers with another label. */
  sparsityGroup?: string;
  /** Policy of the buffers that name none. Default `required`. */
  reusePolicy?: ReusePolicy;
}

/** A layer that remembers by a recurrent state of constant size. */
export interface SsmLayerConfig {
  type: 'ssm';
  layerId: number;
  buffers: readonly BufferConfig[];
  /** Policy of the buffers that name none. Default `required`. */
  reusePolicy?: ReusePolicy;
}

export type LayerConfig = AttentionLayerConfig | SsmLayerConfig;
