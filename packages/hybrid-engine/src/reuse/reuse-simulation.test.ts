import { HostPageDevice, KvCacheManager } from '@bufferwise/cache-manager';
import { defineCacheConfig, type LayerConfig } from '@bufferwise/core-policy';
import { afterEach, expect, test } from 'vitest';
import { ReuseSimulation } from './reuse-simulation.ts';

const TOKENS_PER_BLOCK = 4;
const managers: KvCacheManager[] = [];
afterEach(async () => {
  for (const manager of managers.splice(0)) {
    expect(manager.statistics().openRequests).toBe(0);
    await manager.close();
  }
});

const tokens = Uint32Array.from({ length: 60 }, (_, i) => i);

const full = (layerId: number, reusePolicy?: LayerConfig['reusePolicy']): LayerConfig => ({
  type: 'attention',
  layerId,
  buffers: [{ role: 'key', size: 64 }],
  reusePolicy,
});
const windowed = (layerId: number, slidingWindowSize: number, reusePolicy?: LayerConfig['reusePolicy']): LayerConfig => ({
  ...(full(layerId, reusePolicy) as Extract<LayerConfig, { type: 'attention' }>),
  slidingWindowSize,
});
const state = (...roles: [role: string, policy: LayerConfig['reusePolicy']][]): LayerConfig => ({
  type: 'ssm',
  layerId: 9,
  buffers: roles.map(([role, reusePolicy], i) => ({ role, size: 64 * (i + 1), reusePolicy })),
});

/** Where a request of 50 tokens continues behind one of 60 that left snapshots at 30 and 50, and where a second run begins, or the match. */
async function opened(layers: readonly LayerConfig[]): Promise<[matched: number, from: number]> {
  const config = defineCacheConfig({ tokensPerBlock: TOKENS_PER_BLOCK, layers, tiers: [{ tier: 'device', quota: 32 << 20 }] });
  const manager = new KvCacheManager({ config, device: new HostPageDevice(), debugChecks: true });
  managers.push(manager);
  const first = manager.createKvCache();
  await first.resume();
  let start = 0;
  for (const end of [30, 50, 60]) {
    first.resize(end, start);
    first.commit(tokens.subarray(start, end), { snapshot: true });
    start = end;
  }
  first.close();
  const request = new ReuseSimulation(manager, config).open(tokens.subarray(0, 51));
  const { matched, remainingTokens } = request;
  expect(await request.resume()).toBe(true);
  expect(remainingTokens === 0 || request.runAgain(remainingTokens)).toBe(true);
  expect([request.remainingTokens, request.runAgain(1)]).toEqual([0, false]);
  request.close();
  return [matched, matched - remainingTokens];
}

test('required groups are taken as they are', async () => {
  expect(await opened([windowed(0, 9), full(1)])).toEqual([50, 50]);
});

test('a private window is run again from its first live block, and from a window further back for each layer below', async () => {
  // At 50 a window of 9 begins in block 10: floor((50 + 1 - 9) / 4)
  expect(await opened([windowed(0, 9, 'private'), full(1)])).toEqual([50, 40]);
  expect(await opened([windowed(0, 9, 'private'), windowed(1, 9, 'private'), full(2)])).toEqual([50, 40 - 8]);
});

test('an optional window that ends inside a block is had by continuing where the block begins', async () => {
  // Block 12 begins at 48, where the window is complete: nearer than a second run from 40.
  expect(await opened([windowed(0, 9, 'optional'), full(1)])).toEqual([48, 48]);
});

test('without full attention, or a state, that others left, nothing is reused', async () => {
  expect(await opened([full(0, 'private'), windowed(1, 9)])).toEqual([0, 0]);
  expect(await opened([state(['ssm_state', 'private'], ['conv_state', 'required']), full(0)])).toEqual([0, 0]);
  expect(await opened([state(['ssm_state', 'required'], ['conv_state', 'private']), full(0)])).toEqual([0, 0]);
  expect(await opened([state(['ssm_state', 'required'], ['other_state', 'private']), full(0)])).toEqual([0, 0]);
});

test('a private ring takes nothing', async () => {
  expect(await opened([state(['ssm_state', 'required'], ['replay_x', 'private']), full(0)])).toEqual([50, 50]);
});
