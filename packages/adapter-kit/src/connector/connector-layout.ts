import type { KvCacheManager, PageDevice, PoolMemory } from '@bufferwise/cache-manager';
import type { LayerGroupId } from '@bufferwise/core-policy';
import type { ConnectorGroup, ConnectorLayout, ConnectorMemory, PageBuffer, PageNumbers } from './kv-connector.ts';

/**
 * What of a manager may be offered to a connector: every group but private ones.
 *
 * @param numbersOf what the numbers of a buffer are, which the manager does not know; undefined where that is unknown. Encodings that depend on
 *   it leave such buffers as they are
 */
export function connectorLayout(
  manager: KvCacheManager,
  modelFingerprint: string,
  numbersOf: (layerId: number, role: string) => PageNumbers | undefined = () => undefined,
): ConnectorLayout {
  const { lifecycles, layout } = manager;
  const groups = manager.bufferGrouping.flatMap((bufferIds, id): ConnectorGroup[] => {
    const groupId = id as LayerGroupId;
    const lifecycle = lifecycles.get(groupId);
    if (lifecycle.policy === 'private') return [];
    const layerIds = [...new Set(bufferIds.map(({ layerId }) => layerId))];
    const pageBytes = poolsOf(manager, groupId).reduce((sum, { spec }) => sum + spec.slotBytes, 0);
    return [{ groupId, lifecycle, layerIds, pageBytes, buffers: buffersOf(manager, groupId, numbersOf) }];
  });
  return { modelFingerprint, tokensPerBlock: layout.tokensPerBlock, groups };
}

/** The pages of a manager on its device, as a connector reads and writes them: a page is the slot in all pools, one behind the other. */
export function connectorMemory(manager: KvCacheManager, device: PageDevice): ConnectorMemory {
  return {
    async readPages(groupId, slots) {
      const pools = poolsOf(manager, groupId);
      const list = Int32Array.from(slots);
      // All copies are handed in before the first is waited for.
      const parts = await Promise.all(
        pools.map(async (pool) => {
          const bytes = new Uint8Array(slots.length * pool.spec.slotBytes);
          await device.readSlots(pool, list, bytes);
          return bytes;
        }),
      );
      return slots.map((_, i) =>
        joined(parts.map((bytes, j) => bytes.subarray(i * pools[j].spec.slotBytes, (i + 1) * pools[j].spec.slotBytes))),
      );
    },
    writePages(groupId, slots, pages) {
      let offset = 0;
      for (const pool of poolsOf(manager, groupId)) {
        const { slotBytes } = pool.spec;
        const from = offset;
        device.writeSlots(pool, Int32Array.from(slots), joined(pages.map((page) => page.subarray(from, from + slotBytes))));
        offset += slotBytes;
      }
    },
  };
}

/**
 * The buffers of a group as they lie in a page: pools one behind the other, and each as in its slot. Pools are cut to what a device binds, and buffers of
 * several sizes lie in several pools, so a group may be arranged otherwise on another device.
 */
function buffersOf(
  manager: KvCacheManager,
  groupId: LayerGroupId,
  numbersOf: (layerId: number, role: string) => PageNumbers | undefined,
): PageBuffer[] {
  const begins = new Map<PoolMemory, number>();
  let begin = 0;
  for (const pool of poolsOf(manager, groupId)) {
    begins.set(pool, begin);
    begin += pool.spec.slotBytes;
  }
  const buffers = manager.bufferGrouping[groupId].map(({ layerId, role }): PageBuffer => {
    const { offset, size, expansion } = manager.layout.bufferAttr(layerId, role);
    const numbers = numbersOf(layerId, role);
    const at = (begins.get(manager.poolMemory(layerId, role)) as number) + offset;
    return { layerId, role, offset: at, bytes: size, pagesPerBlock: expansion, ...(numbers && { numbers }) };
  });
  return buffers.sort((a, b) => a.offset - b.offset);
}

function poolsOf(manager: KvCacheManager, groupId: LayerGroupId): PoolMemory[] {
  const pools = new Set(manager.bufferGrouping[groupId].map(({ layerId, role }) => manager.poolMemory(layerId, role)));
  return [...pools];
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
