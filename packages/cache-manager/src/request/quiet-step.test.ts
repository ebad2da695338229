import { defineCacheConfig } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import { full, type LayerShape, type ModelOptions, model, recurrent, seq, windowed } from '../../test/support/stage.ts';
import { KvCacheManager } from '../kv-cache-manager.ts';
import { stateOf } from '../testing/manager-registry.ts';
import { HostPageDevice } from '../tiers/host-page-device.ts';
import type { CommitOptions } from './commit.ts';
import { commitQuietly, resizeQuietly } from './quiet-step.ts';

const NO_SNAPSHOT: CommitOptions = { snapshot: false };

/** A request with blocks of 4 tokens that has decoded so many tokens, one a step. */
async function decoded(layers: readonly LayerShape[], count: number, options: ModelOptions = {}) {
  const config = defineCacheConfig(model(layers, options));
  const manager = new KvCacheManager({ config, device: new HostPageDevice(), debugChecks: true });
  const kv = manager.createKvCache();
  await kv.resume();
  for (let length = 0; length < count; length++) {
    kv.resize(length + 1, length);
    kv.commit([length], NO_SNAPSHOT);
  }
  const [state] = stateOf(manager).open;
  return { manager, kv, state };
}

describe('a step is quiet', () => {
  test('as long as it stays in its block', async () => {
    const { state } = await decoded([full()], 5);
    expect([resizeQuietly(state, 8, 5), commitQuietly(state, [5, 6], NO_SNAPSHOT)]).toEqual([true, true]);
    expect([state.committed, state.history, state.capacity]).toEqual([7, 7, 8]);
  });

  test('not when it enters another block, or completes one', async () => {
    const { state } = await decoded([full()], 5);
    expect(resizeQuietly(state, 9, 5)).toBe(false);
    expect(resizeQuietly(state, 8, 5)).toBe(true);
    expect(commitQuietly(state, seq(3), NO_SNAPSHOT)).toBe(false);
    expect([state.committed, state.history, state.capacity]).toEqual([5, 5, 8]);
  });

  test('not when it moves a window by a block', async () => {
    // A window of 5 tokens in blocks of 4: with 8 written, the next token reads from token 4 on.
    const { state } = await decoded([full(), windowed(5)], 7);
    expect(state.quiet.historyTo).toBe(7);
    expect([resizeQuietly(state, 8, 7), resizeQuietly(state, 8, 8)]).toEqual([true, false]);
  });

  test('not when it leaves a snapshot or a tail, or ends the request', async () => {
    const { state } = await decoded([full(), recurrent()], 5);
    resizeQuietly(state, 6, 5);
    for (const options of [{}, { snapshot: true }, { snapshot: false, end: true }])
      expect(commitQuietly(state, [5], options)).toBe(false);
    expect(commitQuietly(state, [5], NO_SNAPSHOT)).toBe(true);
  });

  test('not when anything is wrong with it', async () => {
    const { kv, state } = await decoded([full()], 5);
    for (const [capacity, history] of [
      [8, 4],
      [6, 7],
      [6.5, 5],
      [6, 5.5],
      [Number.NaN, 5],
    ])
      expect(resizeQuietly(state, capacity, history)).toBe(false);
    expect(commitQuietly(state, seq(1), NO_SNAPSHOT)).toBe(false);
    kv.suspend();
    expect([resizeQuietly(state, 8, 5), commitQuietly(state, [], NO_SNAPSHOT)]).toEqual([false, false]);
  });

  test('not while its blocks are scratch, or would be', async () => {
    const { kv, state } = await decoded([full(), windowed(4)], 4, { swaScratchReuse: { maxRewindLen: 0 } });
    kv.resize(20, 4);
    expect(resizeQuietly(state, 19, 4)).toBe(false);
  });
});
