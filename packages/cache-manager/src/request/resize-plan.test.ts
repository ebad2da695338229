import { defineCacheConfig } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import { full, type LayerShape, type ModelOptions, model, windowed } from '../../test/support/stage.ts';
import { KvCacheManager } from '../kv-cache-manager.ts';
import { stateOf } from '../testing/manager-registry.ts';
import { HostPageDevice } from '../tiers/host-page-device.ts';
import { NUM_RUNS } from './resize-plan.ts';

/** The new blocks that get a page when a fresh request of one layer goes from one capacity to the next. */
async function newPages(
  layer: LayerShape,
  steps: readonly (readonly [capacity: number, history: number])[],
  options?: ModelOptions,
) {
  const manager = new KvCacheManager({ config: defineCacheConfig(model([layer], options)), device: new HostPageDevice() });
  const kv = manager.createKvCache();
  await kv.resume();
  for (const [capacity, history] of steps.slice(0, -1)) kv.resize(capacity, history);
  const state = stateOf(manager);
  const [request] = state.open;
  state.plan.prepare(request, ...steps[steps.length - 1]);
  const [group] = request.groups;
  const blocks: number[] = [];
  for (let run = 0; run < NUM_RUNS; run++) {
    for (let ordinal = state.plan.runBegin(group, run); ordinal < state.plan.runEnd(group, run); ordinal++) blocks.push(ordinal);
  }
  expect(state.plan.numNewPages(group)).toBe(blocks.length);
  return { blocks, scratch: [state.plan.scratchBegin(group), state.plan.oldScratchEnd(group)] };
}

describe('new blocks that get a page', () => {
  test.each<[string, LayerShape, [number, number][], number[]]>([
    ['are all, under full attention', full(), [[13, 0]], [0, 1, 2, 3]],
    [
      'are none within the last block',
      full(),
      [
        [13, 0],
        [16, 0],
      ],
      [],
    ],
    [
      'are those behind the old ones',
      full(),
      [
        [13, 0],
        [17, 0],
      ],
      [4],
    ],
    [
      'are none when the capacity falls',
      full(),
      [
        [13, 0],
        [5, 0],
      ],
      [],
    ],
    ['are all while nothing is written, under a window', windowed(4), [[16, 0]], [0, 1, 2, 3]],
    ['are those that are not stale already', windowed(4), [[16, 16]], [3]],
    ['are sinks and window', windowed(4, 'required', 4), [[20, 20]], [0, 4]],
    ['are none under a window of one token where a block ends', windowed(1), [[16, 16]], []],
  ])('%s', async (_, layer, steps, expected) => {
    expect((await newPages(layer, steps)).blocks).toEqual(expected);
  });

  test('are those around scratch', async () => {
    const scratch = { swaScratchReuse: {} };
    expect((await newPages(windowed(4), [[16, 0]], scratch)).blocks).toEqual([3]);
    expect((await newPages(windowed(4, 'required', 4), [[24, 0]], scratch)).blocks).toEqual([0, 5]);
    expect(
      (
        await newPages(
          windowed(4),
          [
            [16, 0],
            [32, 16],
          ],
          scratch,
        )
      ).blocks,
    ).toEqual([7]);
    expect((await newPages(windowed(4), [[16, 0]], { swaScratchReuse: { maxRewindLen: 4 } })).blocks).toEqual([2, 3]);
  });

  test('are counted without walking them, for a capacity of two thousand million tokens', async () => {
    const manager = new KvCacheManager({ config: defineCacheConfig(model([full()])), device: new HostPageDevice() });
    const kv = manager.createKvCache();
    await kv.resume();
    expect(kv.resize(2 ** 31 - 1)).toBe(false);
    expect(kv.capacity).toBe(0);
  });
});

test('blocks that were there and become scratch are named', async () => {
  const { scratch } = await newPages(
    windowed(4),
    [
      [4, 0],
      [16, 0],
    ],
    { swaScratchReuse: {} },
  );
  expect(scratch).toEqual([0, 1]);
});
