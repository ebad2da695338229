import type { ManagerSnapshot, PoolGroupSnapshot } from '@bufferwise/cache-manager';
import { emptyColumns, type MemoryFrame, NOTHING, type PoolAbout, SLOT_STATES } from '../protocol/memory-frame.ts';

const STATE_INDEX = new Map(SLOT_STATES.map((name, index) => [name, index]));

/** What a snapshot does not say. */
export interface SeenBeside {
  /** Groups of each pool of the colder tiers. */
  readonly coldGroupIds: readonly (readonly number[])[];
  /** The most slots in use at a time, by pool group of the device. */
  readonly mostInUse: readonly number[];
}

/** Writes a snapshot down in columns. @returns the frame, and the buffer that its columns lie in, to be handed on with it */
export function takeMemoryFrame(snapshot: ManagerSnapshot, beside: SeenBeside, sequence: number) {
  const pools = poolsOf(snapshot, beside);
  const numSlots = pools.reduce((sum, pool) => sum + pool.about.numSlots, 0);
  const { buffer, ...columns } = emptyColumns(numSlots);
  const conversationOf = new Map(snapshot.requests.map(({ key, id }) => [key, id ?? NOTHING]));
  /** Where each page lies in the columns. */
  const entryOf = new Map<number, number>();
  for (const { about, slots } of pools) {
    slots.forEach(({ state, page }, slot) => {
      const at = about.firstSlot + slot;
      columns.state[at] = STATE_INDEX.get(state) ?? 0;
      if (page === null) return;
      columns.page[at] = page;
      entryOf.set(page, at);
    });
  }
  for (const page of snapshot.pages) {
    const at = entryOf.get(page.id);
    if (at === undefined) continue;
    columns.block[at] = page.block ?? NOTHING;
    columns.group[at] = page.groupId;
    columns.coverage[at] = page.coverage;
    columns.holds[at] = page.holds;
    columns.priority[at] = page.priority;
    for (const key of page.owners) {
      const conversation = conversationOf.get(key) ?? NOTHING;
      if (conversation === NOTHING) continue;
      if (columns.owner[at] === NOTHING) columns.owner[at] = conversation;
      columns.owners[at] |= 1 << (conversation % 32);
    }
  }
  const frame: MemoryFrame = {
    sequence,
    pools: pools.map(({ about }) => about),
    numSlots,
    omitted: snapshot.omitted.pages,
    ...columns,
  };
  return { frame, buffer };
}

function poolsOf(snapshot: ManagerSnapshot, { coldGroupIds, mostInUse }: SeenBeside) {
  const pools: { about: PoolAbout; slots: PoolGroupSnapshot['slots'] }[] = [];
  let firstSlot = 0;
  const add = (place: Pick<PoolAbout, 'tier' | 'medium' | 'groupIds' | 'mostInUse'>, pool: PoolGroupSnapshot) => {
    const numSlots = pool.slots.length;
    const { slotBytes, numFree } = pool;
    pools.push({ about: { ...place, slotBytes, firstSlot, numSlots, numFree }, slots: pool.slots });
    firstSlot += numSlots;
  };
  snapshot.poolGroups.forEach((pool, index) => {
    const groupIds = snapshot.groups.filter(({ poolGroup }) => poolGroup === index).map(({ groupId }) => groupId);
    add({ tier: 0, medium: 'device', groupIds, mostInUse: mostInUse[index] ?? null }, pool);
  });
  snapshot.colderTiers.forEach(({ tier, poolGroups }, behind) => {
    for (const [index, pool] of poolGroups.entries())
      add({ tier: behind + 1, medium: tier, groupIds: coldGroupIds[index], mostInUse: null }, pool);
  });
  return pools;
}
