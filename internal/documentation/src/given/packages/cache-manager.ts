import { HostPageDevice, KvCacheManager } from '@bufferwise/cache-manager';
import { defineCacheConfig } from '@bufferwise/core-policy';

const config = defineCacheConfig({
  tokensPerBlock: 64,
  layers: [
    { type: 'attention', layerId: 0, buffers: [{ role: 'kv', size: 8192 }] },
    { type: 'ssm', layerId: 1, buffers: [{ role: 'ssm_state', size: 65536 }] },
  ],
  tiers: [{ tier: 'device', quota: 64 << 20 }],
});

export const manager = new KvCacheManager({ config, device: new HostPageDevice() });
export const tokens = Array.from({ length: 2000 }, (_, i) => i);
export const prompt = [...tokens];
export const systemPrompt = tokens.slice(0, 256);
export const turnBorders = [500, 1500];

/** Computes a prompt, once, and leaves it behind. */
const computing = manager.createKvCache({ tokens: prompt });
await computing.resume();
computing.resize(1000);
computing.commit(prompt.slice(0, 1000));
computing.close();

export async function prefillUpTo(_end: number): Promise<void> {}
