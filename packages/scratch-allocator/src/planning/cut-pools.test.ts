import { type CacheConfigInput, defineCacheConfig, type LayerConfig } from '@bufferwise/core-policy';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PoolTooLargeError } from '../errors/pool-too-large-error.ts';
import { StorageLayout } from '../layout/storage-layout.ts';
import { cutPools } from './cut-pools.ts';
import { devicePools } from './device-pools.ts';

const KIB = 2 ** 10;
const MIB = 2 ** 20;

function configOf(layers: readonly LayerConfig[], quota: number, more: Partial<CacheConfigInput> = {}) {
  return defineCacheConfig({ tokensPerBlock: 16, layers, tiers: [{ tier: 'device', quota }], ...more });
}

function attention(layerId: number, slidingWindowSize?: number): LayerConfig {
  const buffers = [
    { role: 'key', size: 64 * KIB },
    { role: 'value', size: 64 * KIB },
  ];
  return { type: 'attention', layerId, slidingWindowSize, buffers };
}

const largest = (config: ReturnType<typeof configOf>) =>
  Math.max(...devicePools(config).map(({ slotBytes, numSlots }) => slotBytes * numSlots));

describe('pools that are too large for one binding', () => {
  const config = configOf(
    [0, 1, 2, 3].map((layerId) => attention(layerId)),
    512 * MIB,
  );

  it('are cut by layers, whose buffers stay together', () => {
    const layout = StorageLayout.fromConfig(cutPools(config, { maxPoolBytes: 128 * MIB }));
    expect(layout.poolGroups).toHaveLength(1);
    expect(layout.poolGroups[0].pools.map(({ slotBytes }) => slotBytes)).toEqual([128, 128, 128, 128].map((kib) => kib * KIB));
    for (let layerId = 0; layerId < 4; layerId++) {
      expect(layout.bufferAttr(layerId, 'key')).toMatchObject({ pool: layerId, offset: 0 });
      expect(layout.bufferAttr(layerId, 'value')).toMatchObject({ pool: layerId, offset: 64 * KIB });
    }
  });

  it('are cut by buffers where one layer alone is too large', () => {
    const one = cutPools(configOf([attention(0)], 256 * MIB), { maxPoolBytes: 128 * MIB });
    expect(StorageLayout.fromConfig(one).bufferAttr(0, 'value')).toMatchObject({ pool: 1, offset: 0 });
  });

  it('stay as they are where they fit, and so does the config', () => {
    expect(cutPools(config, { maxPoolBytes: 512 * MIB })).toBe(config);
  });

  it('keep the coalescing groups that buffers had', () => {
    const [{ buffers, ...layer }] = [attention(0)];
    const apart = { ...layer, buffers: buffers.map((buffer) => ({ ...buffer, coalescingGroup: buffer.role })) } as LayerConfig;
    const layers = [apart, { ...apart, layerId: 1 }] as LayerConfig[];
    const cut = cutPools(configOf(layers, 256 * MIB), { maxPoolBytes: 64 * MIB });
    expect(cut.layers.flatMap((one) => one.buffers.map(({ coalescingGroup }) => coalescingGroup))).toEqual([
      'key#0',
      'value#0',
      'key#1',
      'value#1',
    ]);
  });

  it('are refused when a single buffer does not fit, with its name', () => {
    const tooLarge = configOf([attention(0)], 512 * MIB);
    const refused = () => cutPools(tooLarge, { maxPoolBytes: 128 * MIB });
    expect(refused).toThrow(PoolTooLargeError);
    expect(refused).toThrow('buffer "key" of layer 0 alone takes 268435456 bytes, and may have 134217728');
  });

  it.each([0, -1, 1.5, Number.NaN])('are not cut to %s bytes', (maxPoolBytes) => {
    expect(() => cutPools(config, { maxPoolBytes })).toThrow(expect.objectContaining({ code: 'invalid-pool-bytes' }));
  });
});

it('whatever the config, cut pools fit, groups stay, and memory is what it was but for rounding', () => {
  const someLayer = fc.record({
    window: fc.option(fc.constantFrom(64, 256)),
    ssm: fc.boolean(),
    kib: fc.constantFrom(16, 64, 96),
  });
  fc.assert(
    fc.property(
      fc.array(someLayer, { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 64, max: 512 }),
      fc.integer({ min: 32, max: 256 }),
      (some, quotaMib, maxMib) => {
        const layers = some.map(({ window, ssm, kib }, layerId): LayerConfig => {
          const size = kib * KIB;
          if (ssm)
            return {
              type: 'ssm',
              layerId,
              buffers: [
                { role: 'ssm_state', size },
                { role: 'conv_state', size: 4 * KIB },
              ],
            };
          return {
            type: 'attention',
            layerId,
            slidingWindowSize: window ?? undefined,
            buffers: [
              { role: 'key', size },
              { role: 'value', size },
            ],
          };
        });
        const config = configOf(layers, quotaMib * MIB);
        let cut: typeof config;
        try {
          cut = cutPools(config, { maxPoolBytes: maxMib * MIB });
        } catch (error) {
          expect(error).toBeInstanceOf(PoolTooLargeError);
          return;
        }
        expect(largest(cut)).toBeLessThanOrEqual(maxMib * MIB);
        const [before, after] = [StorageLayout.fromConfig(config), StorageLayout.fromConfig(cut)];
        expect(after.lifecycles.bufferGrouping).toEqual(before.lifecycles.bufferGrouping);
        for (let id = 0; id < before.lifecycles.size; id++) {
          expect(after.pageBytes(id as never)).toBe(before.pageBytes(id as never));
        }
      },
    ),
    { numRuns: 100 },
  );
});
