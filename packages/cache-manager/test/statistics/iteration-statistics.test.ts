import { type CacheConfigInput, defineCacheConfig, type LayerGroupId } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import {
  type CreateKvCacheOptions,
  HostPageDevice,
  type IterationStatistics,
  type KvCache,
  KvCacheManager,
  type ResumeOptions,
  type TokenSeq,
} from '../../src/index.ts';
import { dropPage } from '../../src/testing/index.ts';
import { full, model, recurrent, seq, windowed } from '../support/stage.ts';

const F = 0;
const W = 1;

class Desk {
  readonly manager: KvCacheManager;

  constructor(config: CacheConfigInput) {
    this.manager = new KvCacheManager({ config: defineCacheConfig(config), device: new HostPageDevice(), debugChecks: true });
  }

  async open(options: CreateKvCacheOptions & ResumeOptions = {}): Promise<KvCache> {
    const { optionalReuseGroups, rebuiltGroups, ...rest } = options;
    const cache = this.manager.createKvCache(rest);
    expect(await cache.resume({ optionalReuseGroups, rebuiltGroups })).toBe(true);
    return cache;
  }

  /** One request that reuses nothing, commits all tokens at once, and closes. Its numbers are taken. */
  async donate(tokens: TokenSeq): Promise<void> {
    const cache = await this.open();
    cache.resize(tokens.length);
    cache.commit(tokens);
    cache.close();
    this.manager.takeIterationStatistics();
    this.manager.takeRequestStatistics();
  }

  /** What is not zero of a group since the last time. */
  take(group = F): Partial<IterationStatistics> {
    return nonZero(this.manager.takeIterationStatistics().get(group as LayerGroupId));
  }

  slotBytes(group: number): number {
    return this.manager.storageStatistics(0)[this.manager.layout.poolGroupOf(group as LayerGroupId)].slotBytes;
  }
}

function nonZero(statistics: object = {}): Partial<IterationStatistics> {
  return Object.fromEntries(Object.entries(statistics).filter(([, count]) => count !== 0));
}

describe('growth', () => {
  test('for the prompt is missed, growth behind it is generation', async () => {
    const desk = new Desk(model([full()]));
    const cache = await desk.open({ tokens: seq(8) });
    cache.resize(8);
    cache.commit(seq(8));
    expect(desk.take()).toEqual({ allocatedPages: 2, newPages: 2, missedPages: 2 });
    cache.resize(9);
    expect(desk.take()).toEqual({ allocatedPages: 1, newPages: 1, generationPages: 1 });
  });

  test('behind an expected length is generation once that is written, told in the same call or before', async () => {
    const desk = new Desk(model([full()]));
    const cache = await desk.open({ expectedPromptLength: 6 });
    cache.resize(8, 0);
    cache.resize(12, 5);
    expect(desk.take()).toEqual({ allocatedPages: 3, newPages: 3, missedPages: 3 });
    cache.resize(16, 6);
    expect(desk.take()).toEqual({ allocatedPages: 1, newPages: 1, generationPages: 1 });
  });

  test('is all prompt when nobody knows how long that is', async () => {
    const desk = new Desk(model([full()]));
    const cache = await desk.open();
    cache.resize(8);
    cache.resize(12, 8);
    expect(desk.take()).toEqual({ allocatedPages: 3, newPages: 3, missedPages: 3 });
  });

  test('that is given back before the numbers are taken does not count', async () => {
    const desk = new Desk(model([full(), windowed(8)]));
    const cache = await desk.open({ tokens: seq(8) });
    cache.resize(8);
    cache.commit(seq(8));
    desk.take();
    cache.resize(16);
    cache.resize(8);
    expect(desk.manager.takeIterationStatistics()).toEqual(new Map());
  });

  test('that is given back after the numbers were taken stays counted, and what grows again counts again', async () => {
    const desk = new Desk(model([full()]));
    const cache = await desk.open({ expectedPromptLength: 40 });
    cache.resize(16);
    expect(desk.take()).toMatchObject({ allocatedPages: 4 });
    cache.resize(8);
    expect(desk.take()).toEqual({});
    cache.resize(20);
    expect(desk.take()).toMatchObject({ allocatedPages: 3, missedPages: 3 });
  });

  test('is taken back from what it was counted as', async () => {
    const desk = new Desk(model([full()]));
    const cache = await desk.open({ expectedPromptLength: 4 });
    cache.resize(12, 0);
    cache.resize(20, 4);
    cache.resize(8);
    expect(desk.take()).toEqual({ allocatedPages: 2, newPages: 2, missedPages: 2 });
    cache.resize(16);
    cache.resize(12);
    expect(desk.take()).toEqual({ allocatedPages: 1, newPages: 1, generationPages: 1 });
  });

  test('in two groups counts in both, and the groups are told apart', async () => {
    const desk = new Desk(model([full(), windowed(8)]));
    const cache = await desk.open({ tokens: seq(8) });
    cache.resize(8);
    const taken = desk.manager.takeIterationStatistics();
    expect([...taken.keys()]).toEqual([F, W]);
    for (const statistics of taken.values())
      expect(nonZero(statistics)).toEqual({ allocatedPages: 2, newPages: 2, missedPages: 2 });
  });

  test('leaves out blocks that are stale, or scratch, as they are added', async () => {
    const stale = new Desk(model([full(), windowed(8)]));
    const jumping = await stale.open({ tokens: seq(40) });
    jumping.resize(40, 40);
    const taken = stale.manager.takeIterationStatistics();
    expect([F, W].map((group) => taken.get(group as LayerGroupId)?.allocatedPages)).toEqual([10, 2]);
    const scratch = new Desk(model([full(), windowed(8)], { swaScratchReuse: { maxRewindLen: 0 } }));
    const prefilling = await scratch.open({ tokens: seq(40) });
    prefilling.resize(40, 0);
    expect(scratch.take(W)).toEqual({ allocatedPages: 2, newPages: 2, missedPages: 2 });
  });

  test('of private groups, and of optional ones that were not selected, is no miss', async () => {
    const desk = new Desk(model([full(), windowed(8, 'private'), windowed(8, 'optional')]));
    const cache = await desk.open({ tokens: seq(8) });
    cache.resize(8);
    const taken = desk.manager.takeIterationStatistics();
    expect([0, 1, 2].map((group) => taken.get(group as LayerGroupId)?.missedPages)).toEqual([2, 0, 0]);
    expect(taken.get(1 as LayerGroupId)?.allocatedPages).toBe(2);
  });

  test('adds nothing when it is repeated, refused, or stays inside a block', async () => {
    const desk = new Desk(model([full()], { slots: 4 }));
    const cache = await desk.open({ tokens: seq(8) });
    cache.resize(4);
    expect(desk.take()).toEqual({ allocatedPages: 1, newPages: 1, missedPages: 1 });
    cache.resize(4);
    cache.resize(3);
    expect(cache.resize(10_000)).toBe(false);
    expect(() => cache.resize(4, 5)).toThrow();
    expect(desk.take()).toEqual({});
    cache.resize(8, 4);
    expect(desk.take()).toEqual({ allocatedPages: 1, newPages: 1, missedPages: 1 });
  });
});

describe('reuse', () => {
  const partial = (slotBytes: number) => ({
    fullyReusedPages: 2,
    partlyReusedPages: 1,
    reusedPages: 3,
    allocatedPages: 1,
    newPages: 1,
    copiedPages: 1,
    copiedBytes: slotBytes,
    hitRate: 1,
  });

  test('of a match that ends inside a block is whole pages, one in part, and its copy', async () => {
    const desk = new Desk(model([full()], { reuseMatchBackoff: 1 }));
    await desk.donate(seq(12));
    const cache = await desk.open({ tokens: seq(10) });
    expect(cache.numCommittedTokens).toBe(9);
    expect(desk.take()).toEqual(partial(desk.slotBytes(F)));
  });

  test('of a published tail is the same', async () => {
    const desk = new Desk(model([full()]));
    await desk.donate(seq(9));
    await desk.open({ tokens: [...seq(9), 99] });
    expect(desk.take()).toEqual(partial(desk.slotBytes(F)));
  });

  test('leaves out what is stale at the match', async () => {
    const desk = new Desk(model([windowed(8)]));
    await desk.donate(seq(16));
    await desk.open({ tokens: seq(15) });
    expect(desk.take()).toMatchObject({
      fullyReusedPages: 1,
      partlyReusedPages: 1,
      reusedPages: 2,
      allocatedPages: 1,
      copiedPages: 1,
      hitRate: 1,
    });
  });

  test('of a last page that has left the tree meanwhile is a miss, though its content is used', async () => {
    const desk = new Desk(model([full(), windowed(8)]));
    await desk.donate(seq(12));
    const cache = desk.manager.createKvCache({ tokens: seq(10) });
    dropPage(desk.manager, { tokens: seq(12), block: 2, groupId: W });
    await cache.resume();
    const taken = desk.manager.takeIterationStatistics();
    expect(taken.get(F as LayerGroupId)).toMatchObject({ partlyReusedPages: 1, missedPages: 0 });
    expect(taken.get(W as LayerGroupId)).toMatchObject({ partlyReusedPages: 0, missedPages: 1, copiedPages: 1 });
  });

  test('stays when what grew behind it is given back', async () => {
    const desk = new Desk(model([full()]));
    await desk.donate(seq(8));
    const cache = await desk.open({ tokens: seq(12) });
    cache.resize(12);
    cache.resize(8);
    expect(desk.take()).toEqual({ fullyReusedPages: 2, reusedPages: 2, hitRate: 1 });
  });

  test('and misses make the rate', async () => {
    const desk = new Desk(model([full()]));
    await desk.donate(seq(8));
    const cache = await desk.open({ tokens: seq(40) });
    cache.resize(40);
    expect(desk.take()).toMatchObject({ reusedPages: 2, missedPages: 8, hitRate: 0.2 });
  });
});

describe('optional groups', () => {
  const config = model([full(), windowed(10, 'optional'), windowed(3, 'optional')], { commitMinSnapshot: true });

  async function donated(): Promise<Desk> {
    const desk = new Desk(config);
    const source = await desk.open();
    source.resize(23);
    source.resize(null, 23);
    source.commit(seq(23));
    source.stopCommitting();
    desk.manager.takeIterationStatistics();
    return desk;
  }

  test('that are selected count as hits once, also when a page has left the tree since', async () => {
    const desk = await donated();
    const cache = desk.manager.createKvCache({ tokens: seq(20) });
    expect(dropPage(desk.manager, { tokens: seq(20), block: 3, groupId: 1 })).toBe(true);
    expect(await cache.resume({ optionalReuseGroups: [1, 2] as LayerGroupId[] })).toBe(true);
    const taken = desk.manager.takeIterationStatistics();
    expect(nonZero(taken.get(1 as LayerGroupId))).toEqual({ fullyReusedPages: 3, reusedPages: 3, hitRate: 1 });
    cache.suspend();
    expect(await cache.resume()).toBe(true);
    expect(desk.manager.takeIterationStatistics()).toEqual(new Map());
  });

  test('that are not selected are neither hits nor misses, and their fresh pages are nothing new', async () => {
    const desk = await donated();
    const cache = await desk.open({ tokens: [...seq(20), 90, 91, 92, 93], optionalReuseGroups: [2] as LayerGroupId[] });
    cache.resize(24);
    const taken = desk.manager.takeIterationStatistics();
    const numbers = (group: number) => nonZero(taken.get(group as LayerGroupId));
    expect(numbers(1)).toEqual({ allocatedPages: 4, newPages: 1 });
    expect(numbers(2)).toMatchObject({ reusedPages: 1, missedPages: 1 });
  });

  test('and private ones take fresh pages on a match: allocated, and no miss', async () => {
    const desk = new Desk(model([full(), windowed(8, 'private')]));
    await desk.donate(seq(16));
    await desk.open({ tokens: seq(16) });
    expect(desk.take(1)).toEqual({ allocatedPages: 2 });
  });
});

describe('recurrent state', () => {
  const config = model([full(), recurrent()]);

  test('is looked for once a request, found at the end of a block or inside one, or missed', async () => {
    const desk = new Desk(config);
    const lookups = () => desk.manager.statistics().groups[1].snapshots;
    const none = { lookups: 0, hits: 0, reusedTokens: 0, unreusedTokens: 0, alignedHits: 0, unalignedHits: 0, hitRate: 0 };
    await desk.open({ tokens: seq(48) });
    expect(lookups()).toEqual({ ...none, lookups: 1, unreusedTokens: 48 });
    expect(desk.take(1)).toEqual({ allocatedPages: 1, newPages: 1, missedPages: 1 });
    await desk.donate(seq(32));
    await desk.open({ tokens: seq(48) });
    expect(lookups()).toEqual({
      ...none,
      lookups: 2,
      hits: 1,
      reusedTokens: 32,
      unreusedTokens: 64,
      alignedHits: 1,
      hitRate: 0.5,
    });
    expect(desk.take(1)).toMatchObject({
      allocatedPages: 1,
      newPages: 1,
      fullyReusedPages: 1,
      copiedPages: 1,
      copiedBytes: desk.slotBytes(1),
      hitRate: 1,
    });
    await desk.donate(seq(50));
    await desk.open({ tokens: seq(64) });
    expect(lookups()).toMatchObject({
      lookups: 3,
      hits: 2,
      reusedTokens: 82,
      unreusedTokens: 78,
      alignedHits: 1,
      unalignedHits: 1,
    });
    expect(desk.take(1)).toMatchObject({ partlyReusedPages: 1, copiedPages: 1 });
    expect(desk.manager.statistics().groups[0].snapshots).toBeNull();
  });

  test('that is optional and not selected was not looked for', async () => {
    const desk = new Desk(model([full(), recurrent('optional')]));
    await desk.donate(seq(8));
    await desk.open({ tokens: seq(8) });
    expect(desk.manager.statistics().groups[1].snapshots).toMatchObject({ lookups: 0 });
    expect(desk.take(1)).toEqual({ allocatedPages: 1 });
    await desk.open({ tokens: seq(8), optionalReuseGroups: [1] as LayerGroupId[] });
    expect(desk.manager.statistics().groups[1].snapshots).toMatchObject({ lookups: 1, hits: 1 });
  });

  test('is copied for every snapshot, and so are tails', async () => {
    const desk = new Desk(config);
    const cache = await desk.open();
    cache.resize(10);
    cache.commit(seq(10));
    const taken = desk.manager.takeIterationStatistics();
    expect([F, 1].map((group) => taken.get(group as LayerGroupId)?.copiedPages)).toEqual([1, 1]);
    expect(taken.get(F as LayerGroupId)?.copiedBytes).toBe(desk.slotBytes(F));
  });
});

describe('a request', () => {
  test('counts once, however often its first resume is refused', async () => {
    const desk = new Desk(model([full()], { slots: 6, maxUtilForResume: 1 }));
    await desk.donate(seq(8));
    const { manager } = desk;
    const total = manager.storageStatistics(0)[0].total;
    const waiting = manager.createKvCache({ tokens: seq(7) });
    const hog = await desk.open();
    hog.resize((total - 2) * 4);
    manager.takeIterationStatistics();
    manager.takeRequestStatistics();
    for (let i = 0; i < 5; i++) expect(await waiting.resume()).toBe(false);
    expect(manager.takeIterationStatistics()).toEqual(new Map());
    expect(manager.takeRequestStatistics()).toMatchObject({ started: 0, lookups: 0 });
    hog.close();
    expect(await waiting.resume()).toBe(true);
    expect(manager.takeRequestStatistics()).toEqual({
      started: 1,
      resumed: 0,
      suspended: 0,
      lookups: 1,
      promptTokens: 7,
      hitTokens: 7,
      hitRate: 1,
    });
    expect(desk.take()).toMatchObject({ reusedPages: 2 });
  });

  test('keeps its rate through suspension and resumption, which are counted apart', async () => {
    const desk = new Desk(model([full()]));
    await desk.donate(seq(8));
    const cache = await desk.open({ tokens: seq(40) });
    cache.resize(40);
    for (let i = 0; i < 10; i++) {
      cache.suspend();
      expect(await cache.resume()).toBe(true);
    }
    expect(desk.manager.takeRequestStatistics()).toEqual({
      started: 1,
      resumed: 10,
      suspended: 10,
      lookups: 1,
      promptTokens: 40,
      hitTokens: 8,
      hitRate: 0.2,
    });
    expect(desk.take()).toMatchObject({ reusedPages: 2, missedPages: 8 });
    expect(desk.manager.takeRequestStatistics()).toMatchObject({ started: 0, resumed: 0, hitRate: 0 });
  });

  test('that closes leaves its numbers behind', async () => {
    const desk = new Desk(model([full()]));
    const cache = await desk.open({ tokens: seq(8) });
    cache.resize(8);
    cache.close();
    expect(desk.take()).toMatchObject({ allocatedPages: 2 });
  });

  test('without a prompt looks nothing up', async () => {
    const desk = new Desk(model([full()]));
    await desk.open();
    await desk.open({ tokens: [] });
    expect(desk.manager.statistics().requests).toMatchObject({ started: 2, lookups: 1, promptTokens: 0 });
  });

  test('is refused an expected length that is none', () => {
    const desk = new Desk(model([full()]));
    for (const expectedPromptLength of [-1, 1.5, Number.NaN]) {
      expect(() => desk.manager.createKvCache({ expectedPromptLength })).toThrow(
        expect.objectContaining({ code: 'invalid-prompt-length' }),
      );
    }
    expect(desk.manager.statistics().openRequests).toBe(0);
  });
});

describe('several sequences', () => {
  test('in one request: each further beam takes what it has to itself, and growth counts for every beam', async () => {
    const desk = new Desk(model([full()]));
    const cache = await desk.open({ expectedPromptLength: 0 });
    cache.resize(8, 6);
    desk.take();
    expect(cache.forkBeams(3)).toBe(true);
    expect(desk.take()).toEqual({ allocatedPages: 2, newPages: 2, copiedPages: 2, copiedBytes: 2 * desk.slotBytes(F) });
    cache.resize(12);
    expect(desk.take()).toEqual({ allocatedPages: 3, newPages: 3, generationPages: 3 });
    cache.resize(16);
    cache.resize(12);
    expect(desk.take()).toEqual({});
  });

  test('in one request: what beams that ended had taken stays counted', async () => {
    const desk = new Desk(model([full()]));
    const cache = await desk.open({ expectedPromptLength: 0 });
    cache.resize(4, 4);
    cache.forkBeams(3);
    desk.take();
    cache.resize(8);
    cache.keepBeam(0);
    cache.resize(4);
    expect(desk.take()).toEqual({ allocatedPages: 2, newPages: 2, generationPages: 2 });
  });

  test('in requests that forked: the fork takes pages, and looks nothing up', async () => {
    const desk = new Desk(model([full(), windowed(8, 'private')]));
    const cache = await desk.open({ tokens: seq(8) });
    cache.resize(12, 6);
    desk.manager.takeIterationStatistics();
    desk.manager.takeRequestStatistics();
    const fork = cache.fork();
    const taken = desk.manager.takeIterationStatistics();
    expect(nonZero(taken.get(F as LayerGroupId))).toMatchObject({ allocatedPages: 2, copiedPages: 1 });
    expect(nonZero(taken.get(W as LayerGroupId))).toMatchObject({ allocatedPages: 3, copiedPages: 2 });
    expect(desk.manager.takeRequestStatistics()).toMatchObject({ started: 0, lookups: 0 });
    fork?.resize(8);
    expect(desk.take()).toEqual({});
  });
});

describe('statistics since the beginning', () => {
  test('go on where those of an iteration begin anew', async () => {
    const desk = new Desk(model([full()]));
    await desk.donate(seq(8));
    await desk.donate(seq(8).reverse());
    const { groups, requests } = desk.manager.statistics();
    expect(groups[0].counts).toMatchObject({ allocatedPages: 4, newPages: 4, missedPages: 4 });
    expect(requests.started).toBe(2);
  });
});

describe('peaks', () => {
  test('are the most between two calls, and begin anew from what there is', async () => {
    const desk = new Desk(model([full()], { slots: 4, maxUtilForResume: 1 }));
    const { manager } = desk;
    const { total } = manager.storageStatistics(0)[0];
    manager.takePeakStatistics(0);
    const cache = await desk.open();
    cache.resize(8);
    cache.commit(seq(8));
    cache.close();
    expect(manager.takePeakStatistics(0)).toEqual([{ available: total, unavailable: 2, evictable: 2 }]);
    expect(manager.takePeakStatistics(0)).toEqual([{ available: total, unavailable: 0, evictable: 2 }]);
    const reader = await desk.open({ tokens: seq(8) });
    manager.takePeakStatistics(0);
    expect(manager.takePeakStatistics(0)).toEqual([{ available: total - 2, unavailable: 2, evictable: 0 }]);
    reader.close();
  });

  test('are of tiers that exist', () => {
    const desk = new Desk(model([full()]));
    expect(() => desk.manager.takePeakStatistics(7)).toThrow(expect.objectContaining({ code: 'unknown-tier' }));
  });
});
