import {
  type BufferConfig,
  type CacheConfig,
  defineCacheConfig,
  type LayerConfig,
  type LifecycleId,
} from '@bufferwise/core-policy';
import fc from 'fast-check';
import type { StorageLayout } from '../src/layout/storage-layout.ts';

export const TOKENS_PER_BLOCK = 8;
const policy = fc.constantFrom('required', 'optional', 'private', undefined);

const buffers = fc.uniqueArray(
  fc.record({
    role: fc.constantFrom('key', 'value', 'index', 'scale', 'latent'),
    size: fc.constantFrom(0, 64, 64, 128, 128, 256),
    tokensPerBlockOverride: fc.constantFrom(undefined, undefined, 1, 2, 4, 8),
    reusePolicy: policy,
    coalescingGroup: fc.constantFrom(undefined, undefined, undefined, 'a'),
  }),
  { selector: ({ role }) => role, maxLength: 5 },
);

const layer = fc.record({
  type: fc.constantFrom('attention', 'attention', 'attention', 'ssm'),
  buffers,
  reusePolicy: policy,
  slidingWindowSize: fc.constantFrom(undefined, 4, 8),
  numSinkTokens: fc.constantFrom(0, 0, 0, 1, 9),
  sparsityGroup: fc.constantFrom(undefined, undefined, 's'),
});

/** Small configs in which few sizes, windows and labels meet often: up to 7 layers of up to 5 buffers. */
export const anyConfig = fc.array(layer, { minLength: 1, maxLength: 7 }).map((layers): CacheConfig => {
  const numbered = layers.map(({ type, reusePolicy, slidingWindowSize, numSinkTokens, sparsityGroup, buffers: all }, layerId) => {
    if (type === 'attention') {
      const sinks = slidingWindowSize === undefined ? 0 : numSinkTokens;
      return { type, layerId, reusePolicy, slidingWindowSize, numSinkTokens: sinks, sparsityGroup, buffers: all } as LayerConfig;
    }
    const withoutOverride = all.map((buffer): BufferConfig => ({ ...buffer, tokensPerBlockOverride: undefined }));
    return { type, layerId, reusePolicy, buffers: withoutOverride } as LayerConfig;
  });
  return defineCacheConfig({ tokensPerBlock: TOKENS_PER_BLOCK, layers: numbered, tiers: [{ tier: 'device', quota: 2 ** 30 }] });
});

/** All ids of a layout. */
export function lifecycleIds(layout: StorageLayout): LifecycleId[] {
  return Array.from({ length: layout.lifecycles.size }, (_, id) => id as LifecycleId);
}
