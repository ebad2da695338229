import { type BatchDesc, type CacheConfigInput, defineCacheConfig, type LayerConfig } from '@bufferwise/core-policy';
import { describe, expect, it } from 'vitest';
import { StorageLayout } from '../layout/storage-layout.ts';
import { planSlots, planTier, type TierPlan } from './plan-slots.ts';

const KIB = 2 ** 10;
const MIB = 2 ** 20;
const GIB = 2 ** 30;

function plan(input: Omit<CacheConfigInput, 'tokensPerBlock'>): TierPlan[] {
  const config = defineCacheConfig({ tokensPerBlock: 32, ...input });
  return planSlots(StorageLayout.fromConfig(config), config);
}

function attention(layerId: number, size: number, slidingWindowSize?: number): LayerConfig {
  return { type: 'attention', layerId, slidingWindowSize, buffers: [{ role: 'key', size }] };
}

function requests(n: number, capacity: number, historyLength: number): BatchDesc {
  return { kvCaches: Array.from({ length: n }, () => ({ capacity, historyLength })) };
}

describe('the quota of a tier', () => {
  it('is rounded up to whole grains', () => {
    const [device] = plan({ layers: [attention(0, 64 * KIB)], tiers: [{ tier: 'device', quota: 5_619_712 }] });
    expect(device).toMatchObject({ quota: 6 * MIB, granularity: 2 * MIB, raised: false, slots: [96], ratio: [1] });
  });

  it('rises to what the minimum slots take', () => {
    const layers = [attention(0, MIB), attention(1, MIB / 2, 1), attention(2, MIB / 4, 2)];
    const [device] = plan({ layers, tiers: [{ tier: 'device', quota: 4 * MIB }] });
    expect(device).toMatchObject({ quota: 6 * MIB, raised: true, minSlots: [2, 1, 2], slots: [2, 4, 8] });
  });

  it('may be replaced later, and so may the weights', () => {
    const config = defineCacheConfig({
      tokensPerBlock: 32,
      layers: [attention(0, MIB), attention(1, MIB / 2, 64)],
      tiers: [{ tier: 'device', quota: 64 * MIB }],
    });
    const layout = StorageLayout.fromConfig(config);
    expect(planTier(layout, config, 0)).toEqual(planSlots(layout, config)[0]);
    expect(planTier(layout, config, 0, { quota: 32 * MIB, weights: [1, 3] })).toMatchObject({
      quota: 32 * MIB,
      slots: [8, 48],
      ratio: [0.25, 0.75],
    });
    expect(planTier(layout, config, 0, { quota: MIB })).toMatchObject({ quota: 6 * MIB, raised: true });
  });
});

describe('a plan that makes no sense', () => {
  const config = defineCacheConfig({ tokensPerBlock: 32, layers: [attention(0, MIB)], tiers: [{ tier: 'device', quota: MIB }] });
  const layout = StorageLayout.fromConfig(config);

  it.each([
    ['unknown-tier', 1, {}],
    ['unknown-tier', -1, {}],
    ['invalid-quota', 0, { quota: 0 }],
    ['invalid-quota', 0, { quota: 1.5 }],
    ['invalid-quota', 0, { quota: Number.NaN }],
    ['invalid-pool-weights', 0, { weights: [] }],
    ['invalid-pool-weights', 0, { weights: [1, 1] }],
    ['invalid-pool-weights', 0, { weights: [0] }],
    ['invalid-pool-weights', 0, { weights: [-1] }],
    ['invalid-pool-weights', 0, { weights: [Number.NaN] }],
    ['invalid-pool-weights', 0, { weights: [Number.POSITIVE_INFINITY] }],
  ])('is refused: %s, tier %i, %o', (code, tier, options) => {
    expect(() => planTier(layout, config, tier, options)).toThrow(expect.objectContaining({ name: 'StateError', code }));
  });
});

describe('the share of a pool group', () => {
  it('is what whole grains allow: slots of 2 MiB - 1 and 2 MiB in five grains', () => {
    const [device] = plan({
      layers: [attention(0, 2 * MIB - 1), attention(1, 2 * MIB, 1)],
      tiers: [{ tier: 'device', quota: 10 * MIB }],
      constraints: [requests(1, 32, 0)],
    });
    expect(device.minSlots).toEqual([2, 2]);
    expect(device.slots).toEqual([2, 3]);
  });

  it('is one when two lifecycles share the group', () => {
    const [device] = plan({
      layers: [attention(0, MIB), attention(1, MIB, 64)],
      tiers: [{ tier: 'device', quota: 8 * MIB }],
      initialPoolRatio: [1 / 4, 3 / 4],
    });
    expect(device.ratio).toEqual([1]);
    expect(device.slots).toEqual([8]);
  });

  const windowAndFull = [attention(0, 768 * KIB, 128), attention(1, 1280 * KIB)];
  const tiers = [{ tier: 'device', quota: 8 * GIB }] as const;
  const longDecodes = requests(32, 4096, 4000);
  const manyShort = requests(256, 256, 128);

  it('follows the slot sizes while no request has outrun the window', () => {
    const [{ ratio }] = plan({ layers: windowAndFull, tiers, typicalStep: requests(64, 64, 32) });
    expect(ratio[0] / ratio[1]).toBeCloseTo(0.6, 1);
  });

  it('shrinks for a window that long requests have outrun', () => {
    const [{ ratio }] = plan({ layers: windowAndFull, tiers, typicalStep: longDecodes });
    expect(ratio[0]).toBeLessThan(0.15);
  });

  it('grows again for a batch that must always fit', () => {
    const [without] = plan({ layers: windowAndFull, tiers, typicalStep: longDecodes });
    const [{ ratio }] = plan({ layers: windowAndFull, tiers, typicalStep: longDecodes, constraints: [manyShort] });
    expect(ratio[0]).toBeGreaterThan(without.ratio[0]);
    expect(ratio[0] + ratio[1]).toBeCloseTo(1, 12);
  });

  it('gives way to the batches that must fit, also where it was asked for by ratio', () => {
    const [{ ratio, slots, minSlots }] = plan({
      layers: windowAndFull,
      tiers,
      initialPoolRatio: [0.8, 0.2],
      constraints: [manyShort],
    });
    expect(ratio[1]).toBeGreaterThan(0.2);
    expect(ratio[0]).toBeLessThan(0.8);
    expect(slots[1]).toBeGreaterThanOrEqual(minSlots[1]);
  });

  it('is unchanged by a batch that fits anyway', () => {
    const input = { layers: windowAndFull, tiers, typicalStep: longDecodes };
    expect(plan({ ...input, constraints: [requests(2, 256, 128)] })[0].ratio).toEqual(plan(input)[0].ratio);
  });

  it('is smaller for a window whose prefill uses scratch', () => {
    const layers = Array.from({ length: 32 }, (_, layerId) =>
      layerId % 2 === 0 ? attention(layerId, 8 * KIB, 128) : attention(layerId, 16 * KIB),
    );
    const input = { layers, tiers, typicalStep: requests(8, 16_384, 0) };
    const [without] = plan(input);
    const [withScratch] = plan({ ...input, swaScratchReuse: {} });
    expect(withScratch.ratio[0]).toBeLessThan(without.ratio[0]);
  });

  it('takes any positive weights', () => {
    const input = { layers: windowAndFull, tiers };
    expect(plan({ ...input, initialPoolRatio: [8, 2] })).toEqual(plan({ ...input, initialPoolRatio: [0.8, 0.2] }));
  });

  it('falls back on one long decode when the config says nothing of its load', () => {
    const input = { layers: windowAndFull, tiers };
    expect(plan(input)).toEqual(plan({ ...input, typicalStep: requests(1, 2049, 2048) }));
    expect(plan({ ...input, typicalStep: { kvCaches: [] } })).toEqual(plan(input));
  });
});

describe('batches that must always fit', () => {
  it('leave room for what the admission gate keeps unused', () => {
    const [{ minSlots }] = plan({
      layers: [attention(0, 2 * MIB)],
      tiers: [{ tier: 'device', quota: 2 * MIB }],
      maxUtilForResume: 0.95,
      constraints: [requests(32, 1, 0)],
    });
    expect(minSlots).toEqual([34]);
  });

  it.each([1, 0.5])('ask for recurrent state by the request, whatever the gate (%d)', (maxUtilForResume) => {
    const state: LayerConfig = { type: 'ssm', layerId: 1, buffers: [{ role: 'ssm_state', size: 192 * KIB }] };
    const [device] = plan({
      layers: [attention(0, 2 * MIB), state],
      tiers: [{ tier: 'device', quota: 64 * MIB }],
      maxUtilForResume,
      initialPoolRatio: [99, 1],
      constraints: [requests(12, 0, 0)],
    });
    expect(device.minSlots[1]).toBe(12);
    expect(device.slots[1]).toBe(12);
  });

  it('fill up the grains of recurrent state when no ratio was asked for', () => {
    const state: LayerConfig = { type: 'ssm', layerId: 0, buffers: [{ role: 'ssm_state', size: 192 * KIB }] };
    const [device] = plan({ layers: [state], tiers: [{ tier: 'device', quota: 4 * MIB }], constraints: [requests(12, 0, 0)] });
    expect(device).toMatchObject({ minSlots: [12], slots: [21] });
  });

  it.each([
    [0, 64, 64],
    [64, 58, 58],
    [50, 61, 61],
    [256, 37, 40],
  ])('count a system prompt of %i tokens once', (systemPromptLength, windowed, full) => {
    const [{ slots, minSlots }] = plan({
      layers: [{ ...attention(0, MIB, 128), numSinkTokens: 32 } as LayerConfig, attention(1, MIB / 2)],
      tiers: [{ tier: 'device', quota: MIB }],
      maxUtilForResume: 1,
      constraints: [{ ...requests(4, 512, systemPromptLength), systemPromptLength }],
    });
    expect(minSlots).toEqual([windowed, full]);
    expect(slots[0]).toBeGreaterThanOrEqual(windowed);
    expect(slots[1]).toBeGreaterThanOrEqual(full);
  });

  it('end in a plan however odd the sizes are', () => {
    const layers = Array.from({ length: 9 }, (_, layerId) =>
      attention(layerId, 4097 + 30_011 * layerId, layerId % 3 === 0 ? undefined : 48 * layerId),
    );
    const [device] = plan({
      layers,
      tiers: [{ tier: 'device', quota: 212_549_334 }],
      constraints: [requests(1, 4197, 0), requests(1, 7168, 0)],
    });
    device.slots.forEach((slots, group) => {
      expect(slots).toBeGreaterThanOrEqual(device.minSlots[group]);
    });
  });
});

describe('colder tiers', () => {
  const layers: LayerConfig[] = [attention(0, MIB), attention(1, MIB / 2, 64)];

  it('keep the proportions of slots that the device has', () => {
    const [device, host, disk] = plan({
      layers,
      tiers: [
        { tier: 'device', quota: 64 * MIB },
        { tier: 'host', quota: 128 * MIB },
        { tier: 'disk', quota: 256 * MIB },
      ],
      initialPoolRatio: [3, 1],
    });
    expect(device).toMatchObject({ slots: [48, 32] });
    expect(host).toMatchObject({ granularity: 4 * KIB, slots: [96, 64], minSlots: [1, 1] });
    expect(disk).toMatchObject({ granularity: 2 * MIB, slots: [192, 128], minSlots: [1, 1] });
  });

  it('hold at least one page of every group', () => {
    const [, host] = plan({
      layers,
      tiers: [
        { tier: 'device', quota: 64 * MIB },
        { tier: 'host', quota: 1 },
      ],
    });
    expect(host).toMatchObject({ quota: MIB + MIB / 2, raised: true, slots: [1, 1] });
  });
});

it('a config without buffers has nothing to share out', () => {
  const [device] = plan({
    layers: [{ type: 'attention', layerId: 0, buffers: [] }],
    tiers: [{ tier: 'device', quota: 3 * MIB }],
  });
  expect(device).toEqual({
    tier: 'device',
    granularity: 2 * MIB,
    quota: 4 * MIB,
    raised: false,
    minSlots: [],
    slots: [],
    ratio: [],
  });
});
