import { type CacheConfigInput, defineCacheConfig, type LayerConfig } from '@bufferwise/core-policy';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StorageLayout } from '../layout/storage-layout.ts';
import { fittingRequests } from './fitting-requests.ts';
import { batchSlotsByPoolGroup, slotsToAdmit } from './min-slots.ts';

const buffers = [{ role: 'key', size: 1024 }];
const FULL: LayerConfig = { type: 'attention', layerId: 0, buffers };
const WINDOW: LayerConfig = { type: 'attention', layerId: 1, buffers, slidingWindowSize: 40 };
const STATE: LayerConfig = { type: 'ssm', layerId: 2, buffers: [{ role: 'ssm_state', size: 4096 }] };
const PRIVATE: LayerConfig = { ...WINDOW, layerId: 3, reusePolicy: 'private' };

function setup(layers: LayerConfig[], more: Partial<CacheConfigInput> = {}) {
  const config = defineCacheConfig({ tokensPerBlock: 32, layers, tiers: [{ tier: 'device', quota: 2 ** 30 }], ...more });
  return { config, layout: StorageLayout.fromConfig(config) };
}

describe('fittingRequests', () => {
  it('counts whole pages, and keeps free what maxUtilForResume asks for', () => {
    const fit = (slots: number, length: number, maxUtilForResume: number) => {
      const { config, layout } = setup([FULL], { maxUtilForResume });
      return fittingRequests(layout, config, { slots: [slots], length });
    };
    expect([fit(10, 32, 1), fit(10, 33, 1), fit(10, 320, 1), fit(10, 321, 1)]).toEqual([10, 5, 1, 0]);
    expect([fit(10, 32, 0.9), fit(10, 32, 0.89), fit(10, 33, 0.8)]).toEqual([9, 8, 4]);
    expect(fit(0, 1, 1)).toBe(0);
  });

  it('a shared prompt counts once: 1 page for all and 2 more for each', () => {
    const { config, layout } = setup([FULL], { maxUtilForResume: 1 });
    const fit = (systemPromptLength: number) => fittingRequests(layout, config, { slots: [9], length: 96, systemPromptLength });
    expect([fit(0), fit(31), fit(32), fit(64)]).toEqual([3, 3, 4, 7]);
    expect(fit(1000)).toBe(7);
  });

  it('the pool group with least room decides; state fills its slots to the last', () => {
    const { config, layout } = setup([FULL, STATE], { maxUtilForResume: 0.5 });
    expect(fittingRequests(layout, config, { slots: [100, 7], length: 32 })).toBe(7);
    expect(fittingRequests(layout, config, { slots: [10, 7], length: 32 })).toBe(5);
  });

  it('nothing limits requests that take no memory', () => {
    const { config, layout } = setup([{ ...FULL, buffers: [] }]);
    expect(fittingRequests(layout, config, { slots: [], length: 5 })).toBe(Infinity);
  });

  it('is the largest batch that fits, counted request by request', () => {
    const layers = fc.subarray([FULL, WINDOW, STATE, PRIVATE], { minLength: 1 });
    const lengths = fc.record({ length: fc.integer({ min: 1, max: 300 }), systemPromptLength: fc.nat(300) });
    fc.assert(
      fc.property(
        layers,
        lengths,
        fc.constantFrom(0.5, 0.9, 0.97, 1),
        fc.nat(120),
        (some, { length, systemPromptLength }, maxUtilForResume, room) => {
          const { config, layout } = setup(some, { maxUtilForResume, swaScratchReuse: {} });
          const slots = layout.poolGroups.map((_, group) => room + 7 * group);
          const fitting = fittingRequests(layout, config, { slots, length, systemPromptLength });
          const fits = (requests: number) => {
            const kvCaches = Array.from({ length: requests }, () => ({ capacity: length, historyLength: length - 1 }));
            const batch = { kvCaches, systemPromptLength: Math.min(systemPromptLength, length - 1) };
            const used = batchSlotsByPoolGroup(layout, config, batch);
            return used.every((n, group) => slotsToAdmit(layout, config, group, n) <= slots[group]);
          };
          expect(fitting === 0 || fits(fitting)).toBe(true);
          expect(fits(fitting + 1)).toBe(false);
        },
      ),
    );
  });
});
