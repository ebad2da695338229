import type { KvCache, KvCacheManager, PageDevice, PoolMemory } from '@bufferwise/cache-manager';
import type { LayerGroupId } from '@bufferwise/core-policy';

/**
 * Copies the pages of some groups from one active request to another, block for block where both have one. Both are at the same history, and no
 * page belongs to both. Comes behind everything that was submitted before.
 */
export function copyPages(
  manager: KvCacheManager,
  device: PageDevice,
  from: KvCache,
  to: KvCache,
  groups: ReadonlySet<LayerGroupId>,
): void {
  device.execute(
    [...groups].map((groupId) => {
      const isAttention = manager.lifecycles.get(groupId).kind === 'attention';
      const slotsOf = (cache: KvCache) =>
        isAttention ? cache.basePageIndices(groupId) : Int32Array.of(cache.ssmBlockBaseIndex(groupId));
      const sources: number[] = [];
      const targets: number[] = [];
      const source = slotsOf(from);
      slotsOf(to).forEach((target, ordinal) => {
        if (target < 0) return;
        if (!(source[ordinal] >= 0)) throw new Error(`block ${ordinal} of group ${groupId} has no page to be copied from`);
        sources.push(source[ordinal]);
        targets.push(target);
      });
      const pools = new Set<PoolMemory>(
        manager.bufferGrouping[groupId].map(({ layerId, role }) => manager.poolMemory(layerId, role)),
      );
      return {
        kind: 'copy' as const,
        pools: [...pools],
        sources: Int32Array.from(sources),
        targets: Int32Array.from(targets),
        count: sources.length,
      };
    }),
  );
}
