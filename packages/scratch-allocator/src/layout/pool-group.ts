import type { Lifecycle, LifecycleId, ReusePolicy } from '@bufferwise/core-policy';
import { type CoalescedBuffer, slotBytesOf } from './coalescing.ts';

/** Equal cells in one memory. */
export interface PoolDesc {
  /** Bytes of one slot. */
  readonly slotBytes: number;
  /** What a slot holds, one entry for each lifecycle of the group, in the order of its `lifecycleIds`. */
  readonly coalescedBuffers: readonly CoalescedBuffer[];
}

/** Pools that are allocated in step: a slot id names the same cell in each of them. */
export interface PoolGroupDesc {
  /** Largest slot first. */
  readonly pools: readonly PoolDesc[];
  /** Ascending. */
  readonly lifecycleIds: readonly LifecycleId[];
  /** The one policy of all its lifecycles: pages of different policies never share addresses. */
  readonly policy: ReusePolicy;
  /** The one sparsity label of all its lifecycles; null for none, and for recurrent state. */
  readonly sparsityGroup: string | null;
  /** Bytes of one slot over all pools, which is what a page takes. */
  readonly slotBytes: number;
}

/**
 * Lifecycles with the same list of slot sizes share a group, but never across policies nor sparsity labels. Groups are numbered
 * in the order of their first lifecycle.
 *
 * @param coalescedByLifecycle index = lifecycle id; pools of the lifecycle, largest slot first
 */
export function groupPools(
  lifecycles: readonly Lifecycle[],
  coalescedByLifecycle: readonly (readonly CoalescedBuffer[])[],
): PoolGroupDesc[] {
  return groupLifecycles(lifecycles, (id) => coalescedByLifecycle[id].map(slotBytesOf)).map((ids) => {
    const pools = coalescedByLifecycle[ids[0]].map((first, pool) =>
      Object.freeze({
        slotBytes: slotBytesOf(first),
        coalescedBuffers: Object.freeze(ids.map((id) => coalescedByLifecycle[id][pool])),
      }),
    );
    const lifecycle = lifecycles[ids[0]];
    return Object.freeze({
      pools: Object.freeze(pools),
      lifecycleIds: Object.freeze(ids),
      policy: lifecycle.policy,
      sparsityGroup: sparsityOf(lifecycle),
      slotBytes: pools.reduce((bytes, pool) => bytes + pool.slotBytes, 0),
    });
  });
}

/** A pool group of a colder tier: one pool, whose slot holds a whole page. */
export interface ColdPoolGroupDesc {
  readonly lifecycleIds: readonly LifecycleId[];
  readonly policy: ReusePolicy;
  readonly sparsityGroup: string | null;
  /** Bytes of one slot: the page's bytes over all pools of the device, in the order of these pools. */
  readonly slotBytes: number;
}

/**
 * Pool groups of a colder tier, where a page lies in one piece: lifecycles with equal page bytes share a group, again never
 * across policies nor sparsity labels. Lifecycles apart on the device may so be together here.
 *
 * @param pageBytes index = lifecycle id
 */
export function groupColdPools(lifecycles: readonly Lifecycle[], pageBytes: readonly number[]): ColdPoolGroupDesc[] {
  return groupLifecycles(lifecycles, (id) => [pageBytes[id]]).map((ids) =>
    Object.freeze({
      lifecycleIds: Object.freeze(ids),
      policy: lifecycles[ids[0]].policy,
      sparsityGroup: sparsityOf(lifecycles[ids[0]]),
      slotBytes: pageBytes[ids[0]],
    }),
  );
}

/** Lifecycle ids by equal policy, sparsity and slot sizes, in order of first appearance. */
function groupLifecycles(lifecycles: readonly Lifecycle[], slotSizes: (id: LifecycleId) => number[]): LifecycleId[][] {
  const byKey = new Map<string, LifecycleId[]>();
  lifecycles.forEach((lifecycle, index) => {
    const id = index as LifecycleId;
    const key = JSON.stringify([lifecycle.policy, sparsityOf(lifecycle), slotSizes(id)]);
    const group = byKey.get(key);
    if (group) group.push(id);
    else byKey.set(key, [id]);
  });
  return [...byKey.values()];
}

function sparsityOf(lifecycle: Lifecycle): string | null {
  return lifecycle.kind === 'attention' ? lifecycle.sparsityGroup : null;
}
