import type { ConsumerAdapter } from '@bufferwise/adapter-kit';
import { KvCacheManager } from '@bufferwise/cache-manager';
import { defineCacheConfig, type LayerConfig } from '@bufferwise/core-policy';
import { StorageLayout } from '@bufferwise/scratch-allocator';
import { TOKENS_PER_BLOCK } from './attention-rig.ts';
import { DirtyWebGpuDevice } from './dirty-device-rig.ts';

export interface StartOptions {
  /** What the manager is told of. Default: the layers of the consumer. */
  readonly layers?: readonly LayerConfig[];
  readonly tokensPerBlock?: number;
  readonly scratch?: boolean;
}

/** What an engine does when it starts: lay memory out, bind, and only then make a manager, which makes the pools. */
export function startEngine(
  consumer: ConsumerAdapter<never>,
  pages: DirtyWebGpuDevice,
  { layers = consumer.layers, tokensPerBlock = TOKENS_PER_BLOCK, scratch = false }: StartOptions = {},
): KvCacheManager {
  const config = defineCacheConfig({
    tokensPerBlock,
    layers,
    tiers: [{ tier: 'device', quota: 16 << 20 }],
    ...(scratch ? { swaScratchReuse: {} } : {}),
  });
  consumer.bind(StorageLayout.fromConfig(config), { scratch });
  const manager = new KvCacheManager({ config, device: pages, debugChecks: true });
  // Once more, now that there is a manager: tables are made with its own layout.
  consumer.bind(manager.layout, { scratch });
  return manager;
}

/** What such a start ends with where the consumer refuses: its error. Throws when it does not, or when there is page memory by then. */
export function refusedStart(device: GPUDevice, consumer: ConsumerAdapter<never>, options: StartOptions): unknown {
  const pages = new DirtyWebGpuDevice(device);
  try {
    startEngine(consumer, pages, options);
  } catch (error) {
    if (pages.numPools > 0) throw new Error(`${pages.numPools} pools were made before the refusal`);
    return error;
  }
  throw new Error('nothing was refused');
}
