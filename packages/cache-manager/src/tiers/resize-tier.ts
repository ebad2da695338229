import { StateError } from '@bufferwise/core-policy';
import { planTier, type TierPlan } from '@bufferwise/scratch-allocator';
import type { ManagerState } from '../manager-state.ts';
import type { PageCommand, PoolMemory } from '../ports/page-device.ts';
import type { DeviceGroup } from '../storage/tier.ts';

/**
 * Gives a tier another quota, also while requests are active: what has to leave leaves as it does when room is made, and what
 * stays beyond the new end is carried to free slots below it.
 *
 * The memory of a device pool cannot change its size, so a pool of another size is a new one to which all pages are copied;
 * both exist for that moment.
 *
 * @returns false when the quota is below what the minimum slots take, when requests hold more than would remain, or when the
 *   device has no memory for the pools. Nothing has changed then, but that pages in nobody's use may be in a colder tier
 * @throws {StateError} `unknown-tier`, `invalid-quota`, `device-lost`; whatever the device throws for pools it can never serve, or
 *   for copies into them
 */
export async function resizeTier(manager: ManagerState, tier: number, quota: number): Promise<boolean> {
  if (planFor(manager, tier, quota).raised) return false;
  checkDevice(manager, tier);
  await manager.storage.ready();
  return manager.turns.take(async () => {
    checkDevice(manager, tier);
    const plan = planFor(manager, tier, quota);
    if (!(await changeSlots(manager, tier, plan.slots))) return false;
    manager.needs[tier].resized(plan.quota);
    return true;
  });
}

/** Slots for a quota, divided as the tier is now. */
function planFor({ layout, config, needs }: ManagerState, tier: number, quota: number): TierPlan {
  return planTier(layout, config, tier, { quota, weights: needs[tier]?.weights ?? undefined });
}

/**
 * Gives the pool groups of a tier other numbers of slots, within a turn of the manager and while it has a device.
 *
 * @returns false when requests hold more than would remain, or when the device has no memory for the pools; nothing has changed
 *   then, but that pages in nobody's use may have left
 * @throws whatever the device throws for pools it can never serve, or for copies into them
 */
export async function changeSlots(manager: ManagerState, tier: number, slots: readonly number[]): Promise<boolean> {
  const { storage } = manager;
  const { device } = storage;
  const pools = tier === 0 ? await newPools(manager, slots) : null;
  if (tier === 0 && pools === null) return false;
  const isThere = () => !manager.closed && (tier > 0 || storage.device === device);
  let done = false;
  try {
    done = await makeRoom(manager, tier, slots, isThere, () => {
      if (pools === null) resizeCold(manager, tier, slots);
      else resizeDevice(manager, slots, pools);
    });
  } finally {
    if (!done) destroyNew(storage.poolGroups, pools ?? []);
  }
  return done;
}

function checkDevice(manager: ManagerState, tier: number): void {
  if (manager.closed) throw new StateError('manager-closed', 'resizeTier: the manager is closed');
  if (tier > 0 || manager.storage.device !== null) return;
  throw new StateError('device-lost', 'resizeTier: the device was lost; give the manager another with restoreDevice first');
}

/**
 * Evicts until no pool group uses more slots than it is to have; in rounds, as far as pages can be under way at a time.
 *
 * @param isThere whether what is to change is still there
 * @param change called at once when there is room: a moment later somebody else may have taken it
 */
async function makeRoom(
  manager: ManagerState,
  tier: number,
  slots: readonly number[],
  isThere: () => boolean,
  change: () => void,
): Promise<boolean> {
  const { storage, evictor } = manager;
  const { groups } = storage.tiers[tier];
  const wanted = new Int32Array(groups.length);
  const shortages = new Int32Array(groups.length);
  for (;;) {
    if (!isThere()) return false;
    storage.expire();
    evictor.checkPolicies(tier);
    groups.forEach((group, index) => {
      wanted[index] = Math.max(0, group.slots.slots - slots[index]);
      shortages[index] = Math.max(0, wanted[index] - group.slots.free);
    });
    if (evictor.canFree(tier, shortages)) {
      evictor.free(tier, wanted);
      change();
      return true;
    }
    if (evictor.canFree(tier, shortages, undefined, true)) evictor.freeSome(tier, wanted);
    else if (!storage.landings.any) return false;
    await storage.landings.all();
  }
}

function resizeCold(manager: ManagerState, tier: number, slots: readonly number[]): void {
  const { storage } = manager;
  const { groups, memory } = storage.tiers[tier];
  const { pages } = storage;
  for (const page of pages) {
    if (pages.tier[page] !== tier) continue;
    const group = storage.groupIn(tier, pages.lifecycle[page]);
    const from = pages.slot[page];
    if (from < slots[group]) continue;
    const to = groups[group].take();
    // What is still on its way finds the page where it is by then.
    memory?.move(group, from, to);
    groups[group].slots.release(from);
    pages.slot[page] = to;
  }
  groups.forEach((group, index) => {
    group.slots.resize(slots[index]);
    memory?.trim(index, slots[index]);
  });
}

/** New memory for the pool groups whose slots change, the present one for the others; null when the device has none. */
async function newPools(manager: ManagerState, slots: readonly number[]): Promise<PoolMemory[][] | null> {
  const { storage } = manager;
  const device = storage.device;
  if (device === null) return null;
  const isNew = storage.poolGroups.map((group, index) => group.slots.slots !== slots[index]);
  const created = storage.createPools(
    device,
    slots.map((count, index) => (isNew[index] ? count : null)),
  );
  const pools = created.map((memories, index) => (isNew[index] ? memories : [...storage.poolGroups[index].memories]));
  try {
    await Promise.all(created.flat().map((memory) => memory.ready));
    if (storage.device === device && !manager.closed) return pools;
  } catch {
    // The answer says that there is no room; the device knows why.
  }
  destroyNew(storage.poolGroups, pools);
  return null;
}

function destroyNew(groups: readonly DeviceGroup[], pools: readonly (readonly PoolMemory[])[]): void {
  pools.forEach((memories, index) => {
    for (const memory of memories) if (!groups[index].memories.includes(memory)) memory.destroy();
  });
}

function resizeDevice(manager: ManagerState, slots: readonly number[], pools: readonly (readonly PoolMemory[])[]): void {
  const { storage } = manager;
  const { poolGroups } = storage;
  const moves = poolGroups.map((group, index) =>
    group.slots.slots === slots[index] ? null : planMoves(manager, index, slots[index]),
  );
  try {
    const commands = moves.flatMap((plan, index) => copyOf(plan, poolGroups[index].memories, pools[index]));
    if (commands.length > 0) storage.device?.execute(commands);
  } catch (error) {
    moves.forEach((plan, index) => {
      for (const [from, to] of plan ?? []) if (from !== to) poolGroups[index].slots.release(to);
    });
    throw error;
  }
  moves.forEach((plan, index) => {
    if (plan === null) return;
    forEachSlot(manager, index, (from) => plan.get(from) as number);
    for (const [from, to] of plan) if (from !== to) poolGroups[index].slots.release(from);
    poolGroups[index].slots.resize(slots[index]);
  });
  storage.replacePools(pools);
  for (const { status, groups, numBlocks, history } of manager.open) {
    if (status !== 'active') continue;
    for (const group of groups) if (group.isAttention) group.showPages(storage.pages, numBlocks, history);
  }
}

/** Where every slot in use goes: where it is, or, from beyond the new end, to a free slot below, which is taken. */
function planMoves(manager: ManagerState, group: number, numSlots: number): Map<number, number> {
  const home = manager.storage.poolGroups[group];
  const moves = new Map<number, number>();
  forEachSlot(manager, group, (slot) => {
    moves.set(slot, slot < numSlots ? slot : home.take());
    return slot;
  });
  return moves;
}

function copyOf(
  moves: ReadonlyMap<number, number> | null,
  pools: readonly PoolMemory[],
  targetPools: readonly PoolMemory[],
): PageCommand[] {
  if (moves === null || moves.size === 0) return [];
  const [sources, targets] = [Int32Array.from(moves.keys()), Int32Array.from(moves.values())];
  return [{ kind: 'copy', pools, targetPools, sources, targets, count: moves.size }];
}

/** Asks for each slot of the device that a page or a request's scratch has in a pool group, and lets it have the answer. */
function forEachSlot(manager: ManagerState, group: number, place: (slot: number) => number): void {
  const { pages } = manager.storage;
  for (const page of pages) {
    if (pages.tier[page] !== 0 || manager.storage.groupIn(0, pages.lifecycle[page]) !== group) continue;
    pages.slot[page] = place(pages.slot[page]);
  }
  for (const request of manager.open) {
    for (const { rules, scratchSlots } of request.groups) {
      if (rules.poolGroup !== group) continue;
      for (let i = 0; i < scratchSlots.length; i++) scratchSlots[i] = place(scratchSlots[i]);
    }
  }
}
