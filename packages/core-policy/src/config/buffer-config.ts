import type { ReusePolicy } from '../reuse/reuse-policy.ts';

/** One stored tensor of a layer. */
export interface BufferConfig {
  /** What the tensor is, unique in its layer: `key`, `value`, `ssm_state`, `conv_state`, `replay_x`, … */
  role: string;
  /** Bytes of one page before expansion. 0 = absent on this shard: the buffer is filtered out. */
  size: number;
  /** Tokens in one page of this buffer, a divisor of the config's `tokensPerBlock`; attention only. Absent = `tokensPerBlock`. */
  tokensPerBlockOverride?: number;
  /** Absent = the layer's policy. */
  reusePolicy?: ReusePolicy;
  /** Buffers of different groups never share a slot. Absent is a group of its own. */
  coalescingGroup?: string;
}

/** Names one buffer of a config. */
export interface BufferId {
  layerId: number;
  role: string;
}
