import { defineCacheConfig } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import { HostPageDevice, KvCacheManager, type KvCacheManagerOptions } from '../../src/index.ts';
import { prompt, serve } from '../support/serve.ts';
import { StackPolicy } from '../support/stack-policy.ts';
import { full, type LayerShape, model, recurrent, windowed } from '../support/stage.ts';

function managed(layers: readonly LayerShape[], slots: number | readonly number[], eviction?: KvCacheManagerOptions['eviction']) {
  const config = defineCacheConfig(model(layers, { slots, maxUtilForResume: 1 }));
  return new KvCacheManager({ config, device: new HostPageDevice(), debugChecks: true, eviction });
}

describe('snapshots', () => {
  /** Two requests that share 16 tokens, so that a snapshot stands where they part; then one prompt with a snapshot every 4 tokens. */
  async function shareThenFlood(eviction: 'lru' | 'cost-aware'): Promise<number> {
    const manager = managed([full(), recurrent()], [512, 12], eviction);
    const shared = prompt(1, 16);
    await serve(manager, [...shared, ...prompt(2, 8)]);
    await serve(manager, [...shared, ...prompt(3, 8)], { ends: [16, 24] });
    const ends = Array.from({ length: 20 }, (_, i) => 4 * (i + 1));
    await serve(manager, prompt(4, 80), { ends });
    return serve(manager, [...shared, ...prompt(5, 8)]);
  }

  test('inside one long prompt do not push out the one where paths part', async () => {
    expect(await shareThenFlood('cost-aware')).toBe(16);
  });

  test('do so where age is all that counts', async () => {
    expect(await shareThenFlood('lru')).toBe(0);
  });

  test('thin out, so that a prompt that has too many can still be joined anywhere', async () => {
    const mostLost = async (eviction: 'lru' | 'cost-aware') => {
      const manager = managed([full(), recurrent()], [512, 8], eviction);
      const tokens = prompt(1, 128);
      const ends = Array.from({ length: 32 }, (_, i) => 4 * (i + 1));
      await serve(manager, tokens, { ends });
      return Math.max(...ends.map((length) => length - manager.probeReuse([...tokens.slice(0, length), 7])));
    };
    expect(await mostLost('cost-aware')).toBeLessThan(60);
    expect(await mostLost('lru')).toBeGreaterThan(90);
  });
});

describe('windows', () => {
  test('near the end of a prompt stay, those that it has passed go', async () => {
    const reuse = async (eviction: 'lru' | 'cost-aware') => {
      const manager = managed([full(), windowed(8)], [2000, 900], eviction);
      const ends = [400, 800, 1200, 1600, 2000];
      for (let i = 1; i <= 3; i++) await serve(manager, prompt(1000 * i, 2000), { ends });
      return manager.probeReuse(prompt(1000, 2000));
    };
    expect([await reuse('lru'), await reuse('cost-aware')]).toEqual([0, 2000]);
  });
});

describe('prompts', () => {
  test('that were used again outlive a stream of others that nobody asks for', async () => {
    const reuse = async (eviction: 'lru' | 'cost-aware') => {
      const manager = managed([full()], 64, eviction);
      const known = prompt(1, 64);
      await serve(manager, known);
      await serve(manager, [...known, 1]);
      await serve(manager, [...known, 2]);
      for (let i = 2; i < 8; i++) await serve(manager, prompt(i, 64));
      return serve(manager, [...known, 3]);
    };
    expect([await reuse('lru'), await reuse('cost-aware')]).toEqual([0, 64]);
  });

  test('give up their last blocks before the first', async () => {
    const manager = managed([full()], 32, 'cost-aware');
    const tokens = prompt(1, 64);
    await serve(manager, tokens);
    await serve(manager, prompt(2, 96));
    const left = manager.probeReuse(tokens);
    expect([left > 0, left < 64]).toEqual([true, true]);
  });
});

describe('a policy of the caller', () => {
  test('is made for each pool group, and decides what goes', async () => {
    const sizes: number[] = [];
    const manager = managed([full(), windowed(8)], [32, 16], (pages) => {
      sizes.push(pages.slots);
      return new StackPolicy();
    });
    expect(sizes.length).toBe(2);
    await serve(manager, prompt(1, 16));
    for (let i = 2; i < 30; i++) await serve(manager, prompt(i, 16));
    expect(manager.probeReuse(prompt(1, 16))).toBe(16);
  });

  test('that names no page although there are some is our bug or theirs, and is told', async () => {
    const manager = managed([full()], 8, () => Object.assign(new StackPolicy(), { first: () => -1 }));
    await serve(manager, prompt(1, 32));
    await expect(serve(manager, prompt(2, 32))).rejects.toThrow('an eviction policy of the caller names no page');
  });
});
