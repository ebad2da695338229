import { type CacheConfigInput, defineCacheConfig, type TierConfig } from '@bufferwise/core-policy';
import { readVectors } from '@bufferwise-internal/test-kit';
import { afterAll, describe, expect, it } from 'vitest';
import { HostPageDevice, type KvCache, KvCacheManager, MemoryTierStore } from '../../src/index.ts';
import { checkInvariants } from '../../src/testing/index.ts';
import { stateOf } from '../../src/testing/manager-registry.ts';
import type { Operation } from './operation.ts';
import { runOperation } from './run-operation.ts';

interface Vector {
  config: CacheConfigInput;
  ops: Operation[];
}

/** Lets everything leave a tier that may, as if somebody needed all of its room. */
function pushDown(manager: KvCacheManager, tier: number): void {
  const { storage, evictor } = stateOf(manager);
  const { groups } = storage.tiers[tier];
  const shortages = Int32Array.from(groups, ({ numLeaving }) => numLeaving);
  expect(evictor.canFree(tier, shortages), 'room below for all that may leave').toBe(true);
  evictor.free(
    tier,
    Int32Array.from(groups, ({ slots, numLeaving }) => slots.free + numLeaving),
  );
}

/** The least that there can be. */
const device: TierConfig = { tier: 'device', quota: 1 };
const host: TierConfig = { tier: 'host', quota: 16 << 20 };
const disk: TierConfig = { tier: 'disk', quota: 16 << 20 };

/** Where pages go that nobody uses. What a request is answered must not depend on it. */
const places = [
  { where: 'with a device for everything', tiers: null, pushed: [] },
  { where: 'where all that is not in use is in the host after every call', tiers: [device, host], pushed: [0] },
  { where: 'where all that is not in use is on the disk after every call', tiers: [device, host, disk], pushed: [0, 1] },
];

for (const { where, tiers, pushed } of places) {
  describe.each(['reuse', 'reuse-scratch'] as const)(`the published cases of %s, ${where}`, (file) => {
    const cases = readVectors<Vector>(file);
    let numOffloaded = 0;
    afterAll(() => {
      if (pushed.length > 0) expect(numOffloaded, 'pages that went down in all cases').toBeGreaterThan(1000);
    });

    it('are all there', () => {
      expect(cases.length).toBe(file === 'reuse' ? 160 : 80);
    });

    it.each(cases.map((vector, index) => ({ index, ...vector })))(
      'case $index answers every operation as published',
      async ({ config, ops }) => {
        const manager = new KvCacheManager({
          config: defineCacheConfig({ ...config, tiers: tiers ?? config.tiers }),
          device: new HostPageDevice(),
          disk: new MemoryTierStore(),
          debugChecks: true,
        });
        const requests = new Map<string, KvCache>();
        for (const [step, operation] of ops.entries()) {
          const answered = await runOperation(manager, requests, operation);
          if (operation.expect !== undefined)
            expect(answered, `step ${step}: ${operation.op} ${operation.name ?? ''}`).toEqual(operation.expect);
          for (const tier of pushed) {
            pushDown(manager, tier);
            await manager.settled();
          }
          checkInvariants(manager);
        }
        const { groups } = manager.statistics();
        for (const { counts, lostPages } of groups) expect([counts.droppedPages, lostPages]).toEqual([0, 0]);
        for (const { counts } of groups) numOffloaded += counts.offloadedPages;
        await manager.close({ force: true });
      },
    );
  });
}
