import { type BufferId, type CacheConfig, defineCacheConfig } from '@bufferwise/core-policy';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyConfig, TOKENS_PER_BLOCK } from '../../test/any-config.ts';
import { StorageLayout } from '../layout/storage-layout.ts';
import { planSlots } from '../planning/plan-slots.ts';
import { explain } from './explain.ts';
import { explainPair } from './explain-pair.ts';

const lengths = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 4 });

function buffersOf(config: CacheConfig): BufferId[] {
  return config.layers.flatMap(({ layerId, buffers }) => buffers.map(({ role }) => ({ layerId, role })));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

describe('the laws of an explanation', () => {
  it('what groups cost adds up to the totals', () => {
    fc.assert(
      fc.property(anyConfig, lengths, (config, some) => {
        const { groups, totals, numBuffers } = explain(config, { lengths: some, prefillChunks: some });
        const perToken = groups.map(({ bytesPerToken }) => (bytesPerToken ? bytesPerToken.num / bytesPerToken.den : 0));
        expect(totals.bytesPerToken.num / totals.bytesPerToken.den).toBe(sum(perToken));
        expect(totals.pageBytes).toBe(sum(groups.map(({ pageBytes }) => pageBytes)));
        expect(totals.maxFixedBytes).toBe(sum(groups.map(({ maxRequestBytes }) => maxRequestBytes ?? 0)));
        expect(numBuffers).toBe(buffersOf(config).length);
        some.forEach((tokens, index) => {
          expect(totals.requests[index].tokens).toBe(tokens);
          expect(totals.requests[index].bytes).toBe(sum(groups.map(({ requests }) => requests[index].bytes)));
          const saved = groups.map(({ scratch }) => scratch?.chunks[index].bytesSaved ?? 0);
          expect(totals.scratch[index]).toEqual({ tokens, bytesSaved: sum(saved) });
        });
      }),
    );
  });

  it('a page is its buffers, and its slots are those of the layout', () => {
    fc.assert(
      fc.property(anyConfig, (config) => {
        const layout = StorageLayout.fromConfig(config);
        for (const { id, buffers, pools, pageBytes, poolGroup } of explain(config, { layout }).groups) {
          expect(sum(buffers.map((buffer) => buffer.pageBytes * buffer.expansion))).toBe(pageBytes);
          expect(pools.map(({ slotBytes }) => slotBytes)).toEqual(
            layout.poolGroups[poolGroup].pools.map((pool) => pool.slotBytes),
          );
          expect(pools.map(({ numBuffers, bufferBytes }) => numBuffers * bufferBytes)).toEqual(
            pools.map((pool) => pool.slotBytes),
          );
          expect(pageBytes).toBe(layout.poolGroups[layout.poolGroupOf(id)].slotBytes);
          for (const { pool, offset, pageBytes: bytes, expansion } of buffers) {
            expect(offset + bytes * expansion).toBeLessThanOrEqual(pools[pool].slotBytes);
          }
        }
      }),
    );
  });

  it('bytes a token times the tokens of whole blocks are the bytes of the slots they take', () => {
    fc.assert(
      fc.property(anyConfig, fc.integer({ min: 1, max: 60 }), (config, blocks) => {
        const tokens = blocks * TOKENS_PER_BLOCK;
        const layout = StorageLayout.fromConfig(config);
        for (const { lifecycle, poolGroup, bytesPerToken, requests } of explain(config, { lengths: [tokens], layout }).groups) {
          if (lifecycle.kind === 'ssm' || bytesPerToken === null) continue;
          const inSlots = blocks * layout.poolGroups[poolGroup].slotBytes;
          expect((bytesPerToken.num * tokens) / bytesPerToken.den).toBe(inSlots);
          if (lifecycle.windowSize === null) expect(requests[0].bytes).toBe(inSlots);
          else expect(requests[0].bytes).toBeLessThanOrEqual(inSlots);
        }
      }),
    );
  });

  it('no request holds more than the most, and some length reaches it', () => {
    const all = Array.from({ length: 6 * TOKENS_PER_BLOCK }, (_, index) => index + 1);
    fc.assert(
      fc.property(anyConfig, (config) => {
        for (const { maxRequestPages, maxRequestBytes, pageBytes, requests } of explain(config, { lengths: all }).groups) {
          if (maxRequestPages === null) continue;
          expect(Math.max(...requests.map(({ pages }) => pages))).toBe(maxRequestPages);
          expect(maxRequestBytes).toBe(maxRequestPages * pageBytes);
        }
      }),
      { numRuns: 40 },
    );
  });

  it('tiers are as planned, and stay within their quota', () => {
    const tiers = fc.record({ device: fc.integer({ min: 1, max: 2 ** 27 }), host: fc.integer({ min: 1, max: 2 ** 24 }) });
    fc.assert(
      fc.property(anyConfig, tiers, (some, { device, host }) => {
        const quotas = [
          { tier: 'device', quota: device },
          { tier: 'host', quota: host },
        ] as const;
        const config = defineCacheConfig({ tokensPerBlock: some.tokensPerBlock, layers: some.layers, tiers: quotas });
        const plans = planSlots(StorageLayout.fromConfig(config), config);
        explain(config).tiers.forEach(({ askedQuota, quota, raised, slotsBytes, poolGroups }, tier) => {
          expect(askedQuota).toBe(quotas[tier].quota);
          expect([quota, raised]).toEqual([plans[tier].quota, plans[tier].raised]);
          expect(poolGroups.map(({ slots }) => slots)).toEqual(plans[tier].slots);
          expect(slotsBytes).toBe(sum(poolGroups.map((group) => group.slots * group.slotBytes)));
          expect(slotsBytes).toBeLessThanOrEqual(quota);
          for (const { slots, minSlots } of poolGroups) expect(slots).toBeGreaterThanOrEqual(minSlots);
        });
      }),
    );
  });
});

describe('the laws of a pair', () => {
  it('two buffers are together exactly when they have the same group, pool and coalesced buffer; else something differs', () => {
    fc.assert(
      fc.property(anyConfig, (config) => {
        const layout = StorageLayout.fromConfig(config);
        const ids = buffersOf(config);
        for (const a of ids) {
          for (const b of ids) {
            const pair = explainPair(config, a, b, layout);
            const [attrA, attrB] = [a, b].map(({ layerId, role }) => layout.bufferAttr(layerId, role));
            const sameGroup = attrA.lifecycleId === attrB.lifecycleId;
            const samePoolGroup = attrA.poolGroup === attrB.poolGroup;
            const samePool = samePoolGroup && attrA.pool === attrB.pool;
            const sameCoalescedBuffer = layout
              .coalescedBuffer(a.layerId, a.role)
              .bufferIds.some(({ layerId, role }) => layerId === b.layerId && role === b.role);
            expect(pair).toMatchObject({ a, b, sameGroup, samePoolGroup, samePool, sameCoalescedBuffer });
            expect(sameCoalescedBuffer).toBe(sameGroup && samePool);
            expect(pair.differences.length === 0).toBe(sameCoalescedBuffer);
            const whats = pair.differences.map(({ what }) => what);
            const groupsApart = ['policy', 'kind', 'window', 'sink-blocks', 'sparsity-group'] as const;
            expect(groupsApart.some((what) => whats.includes(what))).toBe(!sameGroup);
            const poolGroupsApart = ['policy', 'sparsity-group', 'slot-sizes'] as const;
            const sparse = samePoolGroup ? [] : whats.filter((what) => poolGroupsApart.includes(what as never));
            expect(sparse.length > 0 || samePoolGroup || whats.includes('kind')).toBe(true);
            for (const { a: valueA, b: valueB } of pair.differences) expect(valueA).not.toEqual(valueB);
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  it('seen from the other side it is the same', () => {
    fc.assert(
      fc.property(anyConfig, fc.nat(), fc.nat(), (config, i, j) => {
        const ids = buffersOf(config);
        fc.pre(ids.length > 0);
        const [a, b] = [ids[i % ids.length], ids[j % ids.length]];
        const { differences, ...rest } = explainPair(config, a, b);
        const swapped = differences.map((difference) => ({ ...difference, a: difference.b, b: difference.a }));
        expect(explainPair(config, b, a)).toEqual({ ...rest, a: b, b: a, differences: swapped });
      }),
    );
  });
});
