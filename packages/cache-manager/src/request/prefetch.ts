import { StateError } from '@bufferwise/core-policy';
import type { PageId } from '../page/page-table.ts';
import { Demand } from '../storage/demand.ts';
import { Boarding } from '../tiers/boarding.ts';
import { forEachPage } from './block-pages.ts';
import { losePages } from './lose-pages.ts';
import type { RequestState } from './request-state.ts';
import { checkSame, checkSuspended } from './resume.ts';

/**
 * Brings what a resume would need from colder tiers into a tier. What is there already, or warmer, stays where it is. Before
 * the first resume that is every claim, also of optional groups: the choice among them is still to come.
 *
 * @returns false when the tier has no room now; everything is where it was then
 * @throws {StateError} `unknown-tier`, or unless suspended; {PagesLostError} when pages of the request are lost
 */
export async function prefetch(state: RequestState, tier: number): Promise<boolean> {
  const { manager, beginnings } = state;
  const { storage } = manager;
  checkSuspended(state, 'prefetch');
  if (storage.tiers[tier] === undefined) {
    throw new StateError(
      'unknown-tier',
      `prefetch: there is no tier ${tier}; tiers run from 0, the device, to ${storage.lastTier}`,
    );
  }
  await storage.ready();
  return manager.turns.take(async () => {
    checkSame(state, beginnings, 'prefetch');
    let boarding = board(state, tier);
    if (boarding === null) {
      if (!storage.landings.any) return false;
      await storage.landings.all();
      checkSame(state, beginnings, 'prefetch');
      boarding = board(state, tier);
      if (boarding === null) return false;
    }
    try {
      const damaged = await boarding.load();
      if (damaged.length === 0 && state.status === 'suspended' && state.beginnings === beginnings) {
        boarding.land();
        boarding.end();
        return true;
      }
      boarding.cancel();
      losePages(manager, damaged);
    } finally {
      boarding.cancel();
    }
    checkSame(state, beginnings, 'prefetch');
    return false;
  });
}

/** Takes slots for all that is colder; null when there is no room. */
function board(state: RequestState, tier: number): Boarding | null {
  const { evictor, storage } = state.manager;
  const { pages } = storage;
  storage.expire();
  const needed = new Set<PageId>();
  forEachPage(state, (page) => needed.add(page));
  const colder = [...needed].filter((page) => pages.tier[page] > tier);
  const demand = new Demand(storage, evictor, tier);
  for (const page of needed) demand.shield(page);
  for (const page of colder) demand.want(storage.groupIn(tier, pages.lifecycle[page]), 1);
  if (!demand.fits()) return null;
  const { memory, groups } = storage.tiers[tier];
  if (
    memory !== null &&
    !groups.every(({ slots, numUsed }, group) => memory.reserve(group, Math.min(slots.slots, numUsed + colder.length)))
  )
    return null;
  const boarding = new Boarding(storage, tier);
  for (const page of needed) boarding.pin(page);
  demand.makeRoom();
  for (const page of colder) boarding.move(page);
  return boarding;
}
