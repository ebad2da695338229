import { defineCacheConfig, type LayerGroupId, StateError } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import { full, type ModelOptions, model, recurrent, seq, windowed } from '../test/support/stage.ts';
import { HostPageDevice, type KvCache, KvCacheManager, TokenError } from './index.ts';

const F = 0 as LayerGroupId;
const W = 1 as LayerGroupId;
const S = 2 as LayerGroupId;

async function opened(options: ModelOptions & { prompt?: readonly number[] } = {}) {
  const { prompt, ...rest } = options;
  const config = defineCacheConfig(model([full(), windowed(8), recurrent()], rest));
  const manager = new KvCacheManager({ config, device: new HostPageDevice(), debugChecks: true });
  const kv = manager.createKvCache({ tokens: prompt });
  expect(await kv.resume()).toBe(true);
  return { manager, kv };
}

const lengths = (kv: KvCache) => [kv.numCommittedTokens, kv.historyLength, kv.capacity];
const refusal = (code: string) => expect.objectContaining({ name: 'StateError', code });

describe('lengths', () => {
  test('are set by a resize; what is left out stays', async () => {
    const { kv } = await opened();
    expect([kv.resize(8, 3), lengths(kv)]).toEqual([true, [0, 3, 8]]);
    expect([kv.resize(9), lengths(kv)]).toEqual([true, [0, 3, 9]]);
    expect([kv.resize(null, 9), lengths(kv)]).toEqual([true, [0, 9, 9]]);
  });

  test.each<[string, number | null, number | undefined, string]>([
    ['history above the capacity', 8, 9, 'history-beyond-capacity'],
    ['history above the capacity that stays', null, 9, 'history-beyond-capacity'],
    ['a capacity below the history', 3, undefined, 'history-beyond-capacity'],
    ['a lower history', 8, 3, 'history-lowered'],
    ['a negative capacity', -1, 4, 'invalid-capacity'],
    ['a capacity that is no whole number', 8.5, 4, 'invalid-capacity'],
    ['a capacity that is no number', Number.NaN, 4, 'invalid-capacity'],
    ['a capacity beyond 31 bits', 2 ** 31, 4, 'invalid-capacity'],
    ['a history that is no whole number', 8, 4.5, 'invalid-history'],
  ])('refuse %s', async (_, capacity, history, code) => {
    const { kv } = await opened();
    kv.resize(8, 4);
    expect(() => kv.resize(capacity, history)).toThrow(refusal(code));
    expect(lengths(kv)).toEqual([0, 4, 8]);
  });

  test('are raised by a commit where history lags behind, never beyond the capacity', async () => {
    const { kv } = await opened();
    kv.resize(6, 1);
    expect(() => kv.commit(seq(7))).toThrow(refusal('commit-beyond-capacity'));
    expect(lengths(kv)).toEqual([0, 1, 6]);
    kv.commit(seq(6));
    expect(lengths(kv)).toEqual([6, 6, 6]);
  });

  test('stay when there are not enough pages, and the call may be tried again', async () => {
    const { manager, kv } = await opened({ slots: 4 });
    kv.resize(12);
    const other = manager.createKvCache();
    await other.resume();
    expect([other.resize(8), lengths(other)]).toEqual([false, [0, 0, 0]]);
    kv.close();
    expect([other.resize(8), lengths(other)]).toEqual([true, [0, 0, 8]]);
  });
});

describe('a request that is not active', () => {
  test('is neither resized, committed to nor suspended, and says so with its state', async () => {
    const { manager, kv } = await opened();
    const fresh = manager.createKvCache();
    kv.suspend();
    for (const [request, state] of [
      [fresh, 'suspended'],
      [kv, 'suspended'],
    ] as const) {
      expect(() => request.resize(4)).toThrow(refusal(`resize-${state}`));
      expect(() => request.commit([1])).toThrow(refusal(`commit-${state}`));
      expect(() => request.commit([])).toThrow(refusal(`commit-${state}`));
      expect(() => request.suspend()).toThrow(refusal(`suspend-${state}`));
    }
    kv.close();
    expect(() => kv.resize(4)).toThrow(refusal('resize-closed'));
    expect(() => kv.commit([1])).toThrow(refusal('commit-closed'));
    expect(() => kv.suspend()).toThrow(refusal('suspend-closed'));
    expect(() => kv.stopCommitting()).toThrow(refusal('stop-closed'));
    await expect(kv.resume()).rejects.toThrow(refusal('resume-closed'));
    kv.close();
  });

  test('is not resumed twice', async () => {
    const { kv } = await opened();
    await expect(kv.resume()).rejects.toThrow(refusal('resume-active'));
    expect(kv.status).toBe('active');
  });

  test('shows no index', async () => {
    const { kv } = await opened();
    kv.resize(8);
    const active = [[...kv.basePageIndices(F)].includes(-1), kv.ssmBlockBaseIndex(S)];
    kv.suspend();
    expect([[...kv.basePageIndices(F)], kv.ssmBlockBaseIndex(S)]).toEqual([[-1, -1], -1]);
    await kv.resume();
    expect([[...kv.basePageIndices(F)].includes(-1), kv.ssmBlockBaseIndex(S)]).toEqual(active);
    kv.close();
    expect([[...kv.basePageIndices(F)], kv.ssmBlockBaseIndex(S)]).toEqual([[-1, -1], -1]);
  });
});

describe('a commit', () => {
  test('of nothing does nothing, also after stopping', async () => {
    const { kv } = await opened();
    kv.commit([]);
    kv.stopCommitting();
    kv.commit([]);
    expect([lengths(kv), kv.resize(4)]).toEqual([[0, 0, 0], true]);
  });

  test('of nothing with `end` stops, and ends', async () => {
    const { kv } = await opened();
    kv.resize(4);
    kv.commit([], { end: true });
    expect(() => kv.resize(5)).toThrow(refusal('resize-ended'));
    expect(() => kv.commit([1])).toThrow(refusal('commit-stopped'));
  });

  test('of nothing with `end` still ends after stopping', async () => {
    const { kv } = await opened();
    kv.stopCommitting();
    kv.commit([], { end: true });
    expect(() => kv.resize(4)).toThrow(refusal('resize-ended'));
  });

  test('after `end` or stopping is refused', async () => {
    for (const stop of [(kv: KvCache) => kv.commit([1], { end: true }), (kv: KvCache) => kv.stopCommitting()]) {
      const { kv } = await opened();
      kv.resize(8);
      stop(kv);
      expect(() => kv.commit([2])).toThrow(refusal('commit-stopped'));
    }
  });

  test('of something that is no token commits nothing', async () => {
    const { manager, kv } = await opened();
    kv.resize(8);
    expect(() => kv.commit([0, 1, 2, -3])).toThrow(TokenError);
    expect([lengths(kv), manager.probeReuse([0, 1, 2])]).toEqual([[0, 0, 8], 0]);
  });

  test('stopping twice is stopping once', async () => {
    const { manager, kv } = await opened();
    kv.resize(6);
    kv.commit(seq(6));
    kv.stopCommitting();
    const { blocks } = manager.statistics();
    kv.stopCommitting();
    expect(manager.statistics().blocks).toBe(blocks);
  });
});

describe('indices', () => {
  test('are one a block, -1 where no later token reads', async () => {
    const { kv } = await opened();
    kv.resize(17, 16);
    expect(kv.basePageIndices(F).length).toBe(5);
    expect([...kv.basePageIndices(W)].map((index) => index >= 0)).toEqual([false, false, true, true, true]);
  });

  test('are a live view: what a commit swaps shows at once', async () => {
    const { manager, kv } = await opened();
    kv.resize(4);
    const twin = manager.createKvCache();
    await twin.resume();
    twin.resize(4);
    twin.commit(seq(4));
    const view = kv.basePageIndices(F);
    const [before] = view;
    kv.commit(seq(4));
    expect([view[0] !== before, view[0]]).toEqual([true, twin.basePageIndices(F)[0]]);
  });

  test('of state name the same slot at every length', async () => {
    const { kv } = await opened();
    const slot = kv.ssmBlockBaseIndex(S);
    kv.resize(100);
    kv.commit(seq(50));
    expect(kv.ssmBlockBaseIndex(S)).toBe(slot);
  });

  test('are asked for by the kind of the group', async () => {
    const { kv } = await opened();
    expect(() => kv.basePageIndices(S)).toThrow(refusal('not-attention'));
    expect(() => kv.ssmBlockBaseIndex(F)).toThrow(refusal('not-state'));
    for (const unknown of [-1, 3, 0.5] as LayerGroupId[]) {
      expect(() => kv.basePageIndices(unknown)).toThrow(refusal('unknown-group'));
      expect(() => kv.ssmBlockBaseIndex(unknown)).toThrow(StateError);
      expect(() => kv.scratch(unknown)).toThrow(StateError);
    }
  });

  test('of scratch are told by a description, null without', async () => {
    const { kv } = await opened({ swaScratchReuse: {} });
    expect(kv.scratch(W)).toBeNull();
    kv.resize(32);
    const scratch = kv.scratch(W);
    expect(scratch?.range).toEqual({ begin: 0, end: 6 });
    expect(new Set(scratch?.slotIds).size).toBe(6);
    expect([kv.scratch(F), kv.scratch(S)]).toEqual([null, null]);
    kv.suspend();
    expect(kv.scratch(W)).toBeNull();
  });
});

describe('the match', () => {
  test('is told by depths and status, which cannot be changed', async () => {
    const { manager, kv } = await opened();
    kv.resize(8);
    kv.commit(seq(8));
    const reader = manager.createKvCache({ tokens: seq(7) });
    expect(reader.matchDepths).toEqual({ path: 7, withoutState: 7, usable: 0 });
    expect(reader.reuseStatus.map(({ complete }) => complete)).toEqual([false, false, false]);
    const whole = manager.createKvCache({ tokens: seq(9) });
    expect(whole.reuseStatus[W]).toEqual({ groupId: W, policy: 'required', complete: true, endpoint: 8, coverage: [[0, 8]] });
    expect(
      Object.isFrozen(whole.matchDepths) && Object.isFrozen(whole.reuseStatus) && Object.isFrozen(whole.reuseStatus[0]),
    ).toBe(true);
  });
});
