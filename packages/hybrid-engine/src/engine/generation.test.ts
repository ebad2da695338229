import { reusedGroups } from '@bufferwise/adapter-kit';
import { HostPageDevice, type KvCache, KvCacheManager } from '@bufferwise/cache-manager';
import { defineCacheConfig, type LayerConfig } from '@bufferwise/core-policy';
import { expect, test } from 'vitest';
import { groupReuse } from './generation.ts';

const attention = (layerId: number, more: object = {}): LayerConfig => ({
  type: 'attention',
  layerId,
  buffers: [{ role: 'key', size: 64 }],
  ...more,
});
const state = (layerId: number, more: object = {}): LayerConfig => ({
  type: 'ssm',
  layerId,
  buffers: [{ role: 'ssm_state', size: 64 }],
  ...more,
});
const tokens = (length: number) => Array.from({ length }, (_, i) => i);

const managerOf = (...layers: LayerConfig[]) =>
  new KvCacheManager({
    config: defineCacheConfig({ tokensPerBlock: 4, tiers: [{ tier: 'device', quota: 1 << 20 }], layers }),
    device: new HostPageDevice(),
    debugChecks: true,
  });

/** Leaves a prompt of so many tokens in the cache. */
async function leave(manager: KvCacheManager, length: number): Promise<void> {
  const cache = manager.createKvCache();
  await cache.resume();
  cache.resize(length);
  cache.commit(tokens(length));
  cache.close();
}

/** What a request that selects nothing begins with. */
const begunWith = (cache: KvCache) => {
  const plan = { optionalReuseGroups: [], rebuiltGroups: [], from: 0 };
  return groupReuse({ cache, reused: reusedGroups(cache.reuseStatus, plan, cache.numCommittedTokens) });
};

const reusedTokens = (manager: KvCacheManager, length: number) => {
  const cache = manager.createKvCache({ tokens: tokens(length) });
  const reuse = begunWith(cache);
  cache.close();
  return reuse.map((group) => group.reusedTokens);
};

test('a full group gives every token of the match, a window its sinks and its last tokens, a state all it has seen', async () => {
  const manager = managerOf(attention(0), attention(1, { slidingWindowSize: 8, numSinkTokens: 2 }), state(2));
  await leave(manager, 40);
  // The token to come is one of the window's eight, so seven are read; the block that they begin in is kept whole.
  expect(reusedTokens(manager, 50)).toEqual([40, 4 + 8, 40]);
});

test('without a match no group gives anything', async () => {
  const manager = managerOf(attention(0), state(1));
  expect(reusedTokens(manager, 50)).toEqual([0, 0]);
  await leave(manager, 40);
  // The state is there after 40 tokens only.
  expect(reusedTokens(manager, 39)).toEqual([0, 0]);
});

test('groups are told by id and policy; optional ones that are not selected give nothing, and private ones never do', async () => {
  const manager = managerOf(attention(0), attention(1, { reusePolicy: 'optional' }), attention(2, { reusePolicy: 'private' }));
  await leave(manager, 40);
  const cache = manager.createKvCache({ tokens: tokens(50) });
  expect(cache.reuseStatus.map(({ complete }) => complete)).toEqual([true, true, false]);
  expect(begunWith(cache)).toEqual([
    { groupId: 0, policy: 'required', reusedTokens: 40 },
    { groupId: 1, policy: 'optional', reusedTokens: 0 },
    { groupId: 2, policy: 'private', reusedTokens: 0 },
  ]);
});

test('what a request began with is still told after it went on and closed', async () => {
  const manager = managerOf(attention(0));
  await leave(manager, 40);
  const cache = manager.createKvCache({ tokens: tokens(50) });
  const { numCommittedTokens: matched, reuseStatus } = cache;
  const reused = reusedGroups(reuseStatus, { optionalReuseGroups: [], rebuiltGroups: [], from: matched }, matched);
  await cache.resume();
  cache.resize(60);
  cache.commit(tokens(60).slice(40));
  cache.close();
  expect(groupReuse({ cache, reused })).toEqual([{ groupId: 0, policy: 'required', reusedTokens: 40 }]);
});
