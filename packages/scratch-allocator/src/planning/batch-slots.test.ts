import {
  type BatchDesc,
  type CacheConfigInput,
  defineCacheConfig,
  type LayerConfig,
  type LifecycleId,
} from '@bufferwise/core-policy';
import { describe, expect, it } from 'vitest';
import { StorageLayout } from '../layout/storage-layout.ts';
import { batchSlots } from './batch-slots.ts';

const GROUP_0 = 0 as LifecycleId;
const GROUP_1 = 1 as LifecycleId;

function slotsOf(input: Pick<CacheConfigInput, 'layers' | 'swaScratchReuse' | 'commitMinSnapshot'>, batch: BatchDesc) {
  const config = defineCacheConfig({ tokensPerBlock: 32, tiers: [{ tier: 'device', quota: 2 ** 30 }], ...input });
  const layout = StorageLayout.fromConfig(config);
  return (id: LifecycleId) => batchSlots(layout, id, batch, config);
}

const windowAndFull: LayerConfig[] = [
  { type: 'attention', layerId: 0, slidingWindowSize: 128, numSinkTokens: 1, buffers: [{ role: 'key', size: 1024 }] },
  { type: 'attention', layerId: 1, buffers: [{ role: 'key', size: 1024 }] },
];

describe('batchSlots', () => {
  it.each([
    [0, 64, 64],
    [64, 58, 58],
    [50, 61, 61],
    [256, 37, 40],
  ])('counts whole blocks of a system prompt of %i tokens once', (prompt, windowed, full) => {
    const kvCaches = Array.from({ length: 4 }, () => ({ capacity: 512, historyLength: prompt }));
    const slots = slotsOf({ layers: windowAndFull }, { kvCaches, systemPromptLength: prompt });
    expect([slots(GROUP_0), slots(GROUP_1)]).toEqual([windowed, full]);
  });

  it('counts a stale shared block as long as one request still reads it', () => {
    const kvCaches = [
      { capacity: 512, historyLength: 256 },
      { capacity: 512, historyLength: 64 },
    ];
    const slots = slotsOf({ layers: windowAndFull }, { kvCaches, systemPromptLength: 64 });
    expect(slots(GROUP_0)).toBe(2 + (16 - 3 - (2 - 1)) + (16 - 2));
  });

  it('replaces scratch blocks by the slots that they share', () => {
    const layers = Array.from({ length: 16 }, (_, layerId) => ({ ...windowAndFull[0], layerId }));
    const batch = { kvCaches: Array.from({ length: 4 }, () => ({ capacity: 512, historyLength: 0 })) };
    expect(slotsOf({ layers, swaScratchReuse: {} }, batch)(GROUP_0)).toBe(24);
    expect(slotsOf({ layers, swaScratchReuse: { maxRewindLen: 64 } }, batch)(GROUP_0)).toBe(4 * (16 - 9 + 1));
    expect(slotsOf({ layers }, batch)(GROUP_0)).toBe(64);
  });

  it('a shared block is never scratch of one request', () => {
    const layers = Array.from({ length: 16 }, (_, layerId) => ({ ...windowAndFull[0], layerId }));
    const batch = { kvCaches: [{ capacity: 512, historyLength: 0 }], systemPromptLength: 256 };
    expect(slotsOf({ layers, swaScratchReuse: {} }, batch)(GROUP_0)).toBe(8 + 8 - 4 + 1);
  });

  it('counts a system prompt for each request where pages are private', () => {
    const layers = windowAndFull.map((layer): LayerConfig => ({ ...layer, reusePolicy: 'private' }));
    const kvCaches = Array.from({ length: 4 }, () => ({ capacity: 512, historyLength: 64 }));
    const slots = slotsOf({ layers }, { kvCaches, systemPromptLength: 64 });
    expect([slots(GROUP_0), slots(GROUP_1)]).toEqual([64, 64]);
  });

  it.each([
    ['optional', true, [3, 3, 3]],
    ['optional', false, [3, 2, 2]],
    ['required', true, [3, 2, 2]],
    ['private', true, [3, 2, 2]],
  ] as const)(
    'what the last whole block of an %s window needs stays while the next one fills, minimal snapshots %s',
    (reusePolicy, commitMinSnapshot, expected) => {
      const layers: LayerConfig[] = [
        { type: 'attention', layerId: 0, slidingWindowSize: 34, reusePolicy, buffers: [{ role: 'key', size: 1024 }] },
      ];
      // Token 96 reads back to token 63, in block 1. From token 97 on nobody does, but the endpoint of 96 tokens still needs it.
      const slots = [96, 97, 127].map((historyLength) =>
        slotsOf({ layers, commitMinSnapshot }, { kvCaches: [{ capacity: 128, historyLength }] })(GROUP_0),
      );
      expect(slots).toEqual(expected);
    },
  );

  it('counts recurrent state by the request, and no block of an empty one', () => {
    const layers: LayerConfig[] = [
      { type: 'ssm', layerId: 0, buffers: [{ role: 'ssm_state', size: 1024 }] },
      { type: 'attention', layerId: 1, buffers: [{ role: 'key', size: 1024 }] },
    ];
    const slots = slotsOf(
      { layers },
      {
        kvCaches: [
          { capacity: 64, historyLength: 63 },
          { capacity: 0, historyLength: 0 },
        ],
      },
    );
    expect([slots(GROUP_0), slots(GROUP_1)]).toEqual([2, 2]);
  });

  it('an empty batch takes nothing', () => {
    const slots = slotsOf({ layers: windowAndFull }, { kvCaches: [] });
    expect([slots(GROUP_0), slots(GROUP_1)]).toEqual([0, 0]);
  });
});
