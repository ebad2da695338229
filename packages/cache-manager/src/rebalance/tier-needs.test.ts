import { expect, test } from 'vitest';
import { LruQueue } from '../eviction/lru-queue.ts';
import { PageTable } from '../page/page-table.ts';
import { TierGroup } from '../storage/tier.ts';
import { TierNeeds } from './tier-needs.ts';

const GRAIN = 4096;

/** A host tier whose pool groups have so many slots of a grain each. */
function tierOf(...slots: number[]) {
  const pages = new PageTable();
  const groups = slots.map((numSlots) => {
    return new TierGroup(pages, { numSlots, slotBytes: GRAIN, passesDown: false, createQueue: (table) => new LruQueue(table) });
  });
  const quota = slots.reduce((sum, n) => sum + n, 0) * GRAIN;
  const slotSizes = groups.map(() => [GRAIN]);
  return { groups, needs: new TierNeeds({ kind: 'host', groups, slotSizes, quota, passesDown: false }) };
}

test('use is watched at its most, and anew once the sizes have changed', () => {
  const { groups, needs } = tierOf(16, 16);
  const taken = Array.from({ length: 10 }, () => groups[0].take());
  needs.sample();
  for (const slot of taken.slice(4)) groups[0].slots.release(slot);
  needs.refused(1, 3);
  expect(needs.groupNeeds([1, 1])).toMatchObject([
    { slots: 16, idle: 6, peakUse: 10, short: 0 },
    { slots: 16, idle: 16, peakUse: 0, short: 3 },
  ]);
  needs.moved(0, 1);
  expect(needs.groupNeeds([1, 1])).toMatchObject([
    { idle: 12, peakUse: 4 },
    { idle: 16, short: 0 },
  ]);
});

test('a gain has to be worth the work done since anything was evicted', () => {
  const { needs } = tierOf(16, 16);
  needs.worked(1_000_000);
  expect(needs.mayMove).toBe(false);
  needs.left(0, 7);
  needs.worked(1000);
  expect(needs.rules().leastGain).toBe(5);
  expect([needs.missed(0, 7, 40), needs.missed(1, 7, 40), needs.mayMove]).toEqual([true, false, true]);
  expect(needs.groupNeeds([1, 1])[0].gains[0]).toBe(40);
});

test('moves that are taken back raise the bar each time, others lower it again', () => {
  const { needs } = tierOf(16, 16, 16);
  const ratioAfter = (from: number, to: number) => {
    needs.moved(from, to);
    return needs.rules().ratio;
  };
  expect([ratioAfter(0, 1), ratioAfter(1, 0), ratioAfter(0, 1), ratioAfter(0, 1), ratioAfter(2, 1)]).toEqual([
    1.25, 2.5, 5, 2.5, 1.25,
  ]);
});

test('counts fade after four turnovers, so that another load is seen', () => {
  const { needs } = tierOf(8, 8);
  for (let page = 1; page <= 33; page++) {
    needs.left(0, page);
    needs.dropped(0);
  }
  needs.left(0, 34);
  const [{ evicted }] = needs.groupNeeds([1, 1]);
  expect(evicted).toBe(17);
});

test('a tier of one pool group watches nothing', () => {
  const { needs } = tierOf(8);
  needs.left(0, 1);
  needs.worked(5);
  expect([needs.missed(0, 1, 1), needs.mayMove]).toEqual([false, false]);
  expect(needs.groupNeeds([1])).toMatchObject([{ idle: 0, evicted: 0 }]);
});
