import { defineCacheConfig, type LayerConfig, type ReusePolicy } from '@bufferwise/core-policy';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HostPageDevice, type KvCache, KvCacheManager } from '../../src/index.ts';
import { dropPage } from '../../src/testing/index.ts';

const layer = (layerId: number, reusePolicy: ReusePolicy, slidingWindowSize?: number): LayerConfig => ({
  type: 'attention',
  layerId,
  slidingWindowSize,
  reusePolicy,
  buffers: [{ role: 'key', size: 64 }],
});
const state = (layerId: number, reusePolicy: ReusePolicy): LayerConfig => ({
  type: 'ssm',
  layerId,
  reusePolicy,
  buffers: [{ role: 'ssm_state', size: 64 }],
});

const LAYERS: readonly LayerConfig[][] = [
  [layer(0, 'required'), layer(1, 'optional', 6)],
  [layer(0, 'required'), state(1, 'optional')],
  [layer(0, 'required'), state(1, 'required'), state(2, 'optional')],
  [layer(0, 'optional'), state(1, 'required')],
  [layer(0, 'required', 5), layer(1, 'optional', 9), state(2, 'optional'), layer(3, 'private')],
];

const anyTokens = fc.array(fc.constantFrom(0, 0, 0, 1), { minLength: 1, maxLength: 22 });
const anyLife = fc.record({
  layers: fc.constantFrom(...LAYERS),
  enablePartialReuse: fc.boolean(),
  donors: fc.array(fc.record({ tokens: anyTokens, cuts: fc.array(fc.integer({ min: 1, max: 22 }), { maxLength: 4 }) }), {
    minLength: 1,
    maxLength: 5,
  }),
  drops: fc.array(fc.record({ donor: fc.nat(4), block: fc.nat(5), group: fc.nat(3) }), { maxLength: 4 }),
  asked: anyTokens,
});

/** The match, if every optional group is complete there, else 0. */
function completeMatch(cache: KvCache): number {
  const complete = cache.reuseStatus.every((group) => group.policy !== 'optional' || group.complete);
  return complete ? cache.numCommittedTokens : 0;
}

test('a match that requires optional groups is the longest at which all of them are complete', async () => {
  await fc.assert(
    fc.asyncProperty(anyLife, async ({ layers, enablePartialReuse, donors, drops, asked }) => {
      const tiers = [{ tier: 'device', quota: 16 << 20 }] as const;
      const config = defineCacheConfig({ tokensPerBlock: 4, layers, tiers, enablePartialReuse });
      const manager = new KvCacheManager({ config, device: new HostPageDevice(), debugChecks: true });
      for (const { tokens, cuts } of donors) {
        const cache = manager.createKvCache();
        await cache.resume();
        let start = 0;
        for (const end of [...cuts, tokens.length].sort((a, b) => a - b)) {
          if (end <= start || end > tokens.length) continue;
          cache.resize(end, start);
          cache.commit(tokens.slice(start, end));
          start = end;
        }
        cache.close();
      }
      for (const { donor, block, group } of drops) {
        const groupId = manager.getBufferGroupId(
          layers[group % layers.length].layerId,
          layers[group % layers.length].buffers[0].role,
        );
        dropPage(manager, { tokens: donors[donor % donors.length].tokens, block, groupId });
      }
      const lookUp = (length: number, requireOptional: boolean) => {
        const cache = manager.createKvCache({ tokens: asked.slice(0, length), requireOptional });
        const match = completeMatch(cache);
        expect(requireOptional && cache.numCommittedTokens !== match).toBe(false);
        cache.close();
        return match;
      };
      const best = (lengths: readonly number[]) => Math.max(...lengths.map((length) => lookUp(length, false)));
      const all = asked.map((_, i) => i + 1);
      const longest = lookUp(asked.length, true);
      if (enablePartialReuse) expect(longest).toBe(best(all));
      // A partial block is there for whoever asks for exactly that then, and the state in a whole block for whoever asks for more.
      else expect(longest).toBeGreaterThanOrEqual(best(all.filter((length) => length % 4 === 0 || length === asked.length)));
      await manager.close();
    }),
    { numRuns: Number(process.env.BUFFERWISE_PROPERTY_RUNS ?? 300) },
  );
});
