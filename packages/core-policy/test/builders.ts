import type { AttentionLayerConfig, BufferConfig, CacheConfigInput, SsmLayerConfig } from '../src/index.ts';

/** A buffer of 4,096 bytes, or what `fields` says. */
export function buffer(role: string, fields: Partial<BufferConfig> = {}): BufferConfig {
  return { role, size: 4096, ...fields };
}

/** An attention layer with a key and a value, or what `fields` says. */
export function attention(layerId: number, fields: Partial<AttentionLayerConfig> = {}): AttentionLayerConfig {
  return { type: 'attention', layerId, buffers: [buffer('key'), buffer('value')], ...fields };
}

/** An SSM layer with a state and a convolution tail, or what `fields` says. */
export function ssm(layerId: number, fields: Partial<SsmLayerConfig> = {}): SsmLayerConfig {
  return { type: 'ssm', layerId, buffers: [buffer('ssm_state'), buffer('conv_state')], ...fields };
}

/** A valid input: 4 tokens a block, one attention layer, 4 MiB on the device, or what `fields` says. */
export function input(fields: Partial<CacheConfigInput> = {}): CacheConfigInput {
  return { tokensPerBlock: 4, layers: [attention(0)], tiers: [{ tier: 'device', quota: 4 << 20 }], ...fields };
}
