export { type BlockRange, divUp } from './block-range.ts';
export type { Branded } from './branded.ts';
export type { BufferConfig, BufferId } from './config/buffer-config.ts';
export type { AttentionLayerConfig, LayerConfig, SsmLayerConfig } from './config/layer-config.ts';
export { BufferwiseError } from './errors/bufferwise-error.ts';
export type { AttentionLifecycle, LayerGroupId, Lifecycle, LifecycleId, SsmLifecycle } from './lifecycle/lifecycle.ts';
export type { ReusePolicy } from './reuse/reuse-policy.ts';
