import type { CacheStatistics, StoredEvent } from '@bufferwise/cache-manager';
import { expect, test } from 'vitest';
import { type Counters, EventJournal } from './event-journal.ts';

interface Moved {
  evictedPages: number;
  offloadedPages: number;
  onboardedPages: number;
  droppedPages: number;
}

/** Counters of one group. */
const counters = (moved: Partial<Moved>, more: Partial<Counters> = {}): Counters => {
  const { evictedPages = 0, ...counts } = moved;
  const group = { groupId: 0, evictedPages, counts: { offloadedPages: 0, onboardedPages: 0, droppedPages: 0, ...counts } };
  return {
    statistics: { groups: [group] } as unknown as CacheStatistics,
    preemptions: { numSuspensions: 0, numReleases: 0 },
    outside: null,
    ...more,
  };
};
const stored = (groupId: number, tier: number, numBlocks: number) =>
  ({ type: 'stored', groupId, tier, blocks: new Array(numBlocks).fill(null) }) as unknown as StoredEvent;

test('pages that became reusable are counted by group, on the device alone', () => {
  const journal = new EventJournal(() => 7);
  journal.push([stored(0, 0, 2), stored(1, 0, 1)]);
  journal.push([stored(0, 0, 1), stored(0, 1, 4)]);
  expect(journal.take(counters({}))).toEqual([
    { at: 7, kind: 'stored', groupId: 0, numPages: 3 },
    { at: 7, kind: 'stored', groupId: 1, numPages: 1 },
  ]);
  expect(journal.take(counters({}))).toEqual([]);
});

test('what left, came back and was dropped is what the counters say since the last look', () => {
  const journal = new EventJournal(() => 0);
  journal.take(counters({ evictedPages: 5, offloadedPages: 5 }));
  const entries = journal.take(counters({ evictedPages: 8, offloadedPages: 6, onboardedPages: 2, droppedPages: 1 }));
  expect(entries).toEqual([
    { at: 0, kind: 'evicted', groupId: 0, numPages: 3, kept: 1 },
    { at: 0, kind: 'onboarded', groupId: 0, numPages: 2 },
    { at: 0, kind: 'dropped', groupId: 0, numPages: 1 },
  ]);
});

test('another engine counts from 0', () => {
  const journal = new EventJournal(() => 0);
  journal.take(counters({ evictedPages: 5 }));
  journal.restart();
  expect(journal.take(counters({ evictedPages: 1 }))).toMatchObject([{ kind: 'evicted', numPages: 1 }]);
});

test('who made way, and what came from an earlier visit, is told once', () => {
  const journal = new EventJournal(() => 0);
  const outside = { loadedTokens: 32, savedTokens: 16, failedLoads: 0, failedSaves: 0, slowLookups: 0 };
  const now = counters({}, { preemptions: { numSuspensions: 1, numReleases: 2 }, outside });
  expect(journal.take(now)).toEqual([
    { at: 0, kind: 'preempted', suspended: 1, released: 2 },
    { at: 0, kind: 'loaded', numTokens: 32 },
    { at: 0, kind: 'saved', numTokens: 16 },
  ]);
  expect(journal.take(now)).toEqual([]);
});
