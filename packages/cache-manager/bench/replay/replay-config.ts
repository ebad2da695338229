import type { CacheConfig } from '@bufferwise/core-policy';
import { type CacheConfigInput, defineCacheConfig, type LayerConfig } from '@bufferwise/core-policy';

/** What the layers of the replayed model are. */
export type ModelKind = 'full' | 'window' | 'state';

export const BLOCK_TOKENS = 16;
const WINDOW = 1024;
/** Tokens whose keys and values take as many bytes as one recurrent state. */
const STATE_TOKENS = 512;
/** Device memory comes in grains of so many bytes; pages are sized so that every pool is a whole number of them. */
const GRAIN = 2 << 20;

/**
 * Memory for `capacity` tokens of full attention; besides, for a window or for state, as many bytes again. `stateShare` is the
 * part of all bytes that holds state: a half gives one state for every 512 tokens.
 */
export function replayConfig(kind: ModelKind, capacity: number, stateShare: number): CacheConfig {
  const pageBytes = (32 * GRAIN * BLOCK_TOKENS) / capacity;
  const attentionBytes = (capacity / BLOCK_TOKENS) * pageBytes;
  const layers: LayerConfig[] = [{ type: 'attention', layerId: 0, buffers: [{ role: 'kv', size: pageBytes }] }];
  if (kind === 'window') {
    layers.push({ type: 'attention', layerId: 1, slidingWindowSize: WINDOW, buffers: [{ role: 'kv', size: pageBytes }] });
  }
  if (kind === 'state') {
    const stateBytes = (pageBytes * STATE_TOKENS) / BLOCK_TOKENS;
    layers.push({ type: 'ssm', layerId: 1, buffers: [{ role: 'ssm_state', size: stateBytes }] });
  }
  const input: CacheConfigInput = {
    tokensPerBlock: BLOCK_TOKENS,
    layers,
    tiers: [{ tier: 'device', quota: kind === 'full' ? attentionBytes : 2 * attentionBytes }],
    initialPoolRatio: kind === 'state' ? [1 - stateShare, stateShare] : undefined,
    maxUtilForResume: 1,
  };
  return defineCacheConfig(input);
}
