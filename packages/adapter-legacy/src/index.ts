/**
 * Consumers for engines that know layers and no buffers: one lifecycle, and one index table, a layer.
 *
 * @packageDocumentation
 */

// Attention
export type { LegacyAttentionLayer, LegacyAttentionRole } from './attention/attention-layer.ts';
export {
  LegacyAttentionConsumer,
  type LegacyAttentionOptions,
  type LegacyAttentionRows,
  type LegacyAttentionStep,
  type LegacyAttentionWork,
} from './attention/legacy-attention-consumer.ts';
// Lookups by layer
export { type BlockIndexOptions, type BlockIndexRows, type BufferPlace, LegacyCacheView } from './legacy-cache-view.ts';
// Mamba-2
export {
  LegacyMambaConsumer,
  type LegacyMambaOptions,
  type LegacyMambaRows,
  type LegacyMambaStep,
  type LegacyMambaWork,
} from './mamba/legacy-mamba-consumer.ts';
export type { LegacyMambaLayer, LegacyMambaRole } from './mamba/mamba-layer.ts';
