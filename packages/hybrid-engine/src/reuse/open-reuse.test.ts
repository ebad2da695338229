import { firstLiveToken, usualReplay } from '@bufferwise/adapter-kit';
import { HostPageDevice, KvCacheManager } from '@bufferwise/cache-manager';
import { dropPage } from '@bufferwise/cache-manager/testing';
import { defineCacheConfig, type LayerConfig, type LayerGroupId, type ReusePolicy } from '@bufferwise/core-policy';
import { afterEach, expect, test } from 'vitest';
import { type LookBack, ModelMemory } from './model-memory.ts';
import { ReuseOpener } from './open-reuse.ts';

const WINDOW = 9;
const managers: KvCacheManager[] = [];
afterEach(async () => {
  for (const manager of managers.splice(0)) {
    expect(manager.statistics().openRequests).toBe(0);
    await manager.close();
  }
});

/** State, then a window, then full attention, each with a policy. */
function modelOf(state: ReusePolicy, window: ReusePolicy) {
  const layers: LayerConfig[] = [
    { type: 'ssm', layerId: 0, buffers: [{ role: 'ssm_state', size: 64 }], reusePolicy: state },
    { type: 'attention', layerId: 1, slidingWindowSize: WINDOW, buffers: [{ role: 'key', size: 64 }], reusePolicy: window },
    { type: 'attention', layerId: 2, buffers: [{ role: 'key', size: 64 }] },
  ];
  const config = defineCacheConfig({ tokensPerBlock: 4, layers, tiers: [{ tier: 'device', quota: 16 << 20 }] });
  const manager = new KvCacheManager({ config, device: new HostPageDevice(), debugChecks: true });
  managers.push(manager);
  const lookBacks: LookBack[] = [
    { kind: 'ssm', layerId: 0, tailTokens: 3 },
    { kind: 'attention', layerId: 1, windowSize: WINDOW },
    { kind: 'attention', layerId: 2, windowSize: null },
  ];
  const memory = new ModelMemory(manager, lookBacks, {
    planReplay: (status, matched) =>
      usualReplay(status, matched, (groupId) => firstLiveToken(manager.lifecycles.get(groupId), matched, 4)),
  });
  return { manager, opener: new ReuseOpener(manager, memory, () => {}) };
}

const tokens = Uint32Array.from({ length: 60 }, (_, i) => i);

/** Leaves a prompt in the cache, with state and windows at each of the ends. */
async function leave(manager: KvCacheManager, ends: readonly number[]): Promise<void> {
  const cache = manager.createKvCache();
  await cache.resume();
  let start = 0;
  for (const end of ends) {
    cache.resize(end, start);
    cache.commit(tokens.subarray(start, end), { snapshot: true });
    start = end;
  }
  cache.close();
}

/** Where a request continues, and where a second run begins; null when there is none. */
function opened({ opener }: ReturnType<typeof modelOf>, length: number): [number, number | null] {
  const reuse = opener.open({
    tokens: tokens.subarray(0, length),
    lookup: true,
    publish: true,
    expectedPromptLength: length + 1,
  });
  const found: [number, number | null] = [reuse.matched, reuse.catchUp?.from ?? null];
  reuse.close();
  return found;
}

const ENDS = [12, 24, 36, 48];

test('with everything there is no second run', async () => {
  const model = modelOf('required', 'required');
  await leave(model.manager, ENDS);
  expect(opened(model, 50)).toEqual([48, null]);
});

test('a private window is filled by a run from the last state before it', async () => {
  const model = modelOf('required', 'private');
  await leave(model.manager, ENDS);
  // Live at 48 is what is left of the last 8 tokens: from block 10 on.
  expect(opened(model, 50)).toEqual([48, 36]);
});

test('optional windows are used where they are complete; to continue there is better than to run as much a second time', async () => {
  const model = modelOf('required', 'optional');
  await leave(model.manager, ENDS);
  expect(opened(model, 50)).toEqual([48, null]);
  const groupId = model.manager.getBufferGroupId(1, 'key');
  dropPage(model.manager, { tokens, block: 11, groupId });
  expect(opened(model, 50)).toEqual([36, null]);
});

test('optional state that is gone takes the request back to where it is there', async () => {
  const model = modelOf('optional', 'required');
  await leave(model.manager, ENDS);
  const groupId = model.manager.getBufferGroupId(0, 'ssm_state') as LayerGroupId;
  dropPage(model.manager, { tokens: tokens.subarray(0, 48), block: 11, groupId });
  expect(opened(model, 50)).toEqual([36, null]);
});

test('a second run begins only where optional state is there, too', async () => {
  const model = modelOf('optional', 'private');
  await leave(model.manager, ENDS);
  expect(opened(model, 48)).toEqual([48, 36]);
  const groupId = model.manager.getBufferGroupId(0, 'ssm_state') as LayerGroupId;
  dropPage(model.manager, { tokens: tokens.subarray(0, 36), block: 8, groupId });
  expect(opened(model, 48)).toEqual([48, 24]);
});

test('private state means the whole prefix', async () => {
  const model = modelOf('private', 'required');
  await leave(model.manager, ENDS);
  expect(opened(model, 50)).toEqual([0, null]);
});
