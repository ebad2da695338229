/**
 * Attention over paged keys and values on WebGPU: a consumer with an index table for each buffer.
 *
 * @packageDocumentation
 */

export { AttentionConsumer, type AttentionConsumerOptions, type AttentionWork } from './attention-consumer.ts';
export { type AttentionLayer, type AttentionRole, attentionLayerConfig } from './attention-layer.ts';
export type { AttentionRows, AttentionStep } from './attention-step.ts';
