import { type CacheConfigInput, defineCacheConfig } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import {
  blockKeys,
  EventLog,
  HostPageDevice,
  type KvCache,
  KvCacheManager,
  type KvEvent,
  keyToHex,
  type ReuseScope,
  type TokenSeq,
  toVllmEvents,
} from '../../src/index.ts';
import { dropPage } from '../../src/testing/index.ts';
import { full, model, recurrent, seq, windowed } from '../support/stage.ts';

const NAMES = new Map<string, string>();
for (const [prefix, scope] of [
  ['', {}],
  ['lora 7: ', { loraId: 7 }],
  ['salt 7: ', { salt: 7 }],
] as const) {
  for (const [ordinal, key] of blockKeys(seq(64), scope, 4).entries()) NAMES.set(keyToHex(key), `${prefix}${ordinal}`);
}

/** A manager with a log, and requests that run through it. */
class Desk {
  readonly log: EventLog;
  readonly manager: KvCacheManager;

  constructor(config: CacheConfigInput, options: { partialBlocks?: boolean } = {}) {
    this.log = new EventLog(options);
    this.manager = new KvCacheManager({
      config: defineCacheConfig(config),
      device: new HostPageDevice(),
      events: this.log,
      debugChecks: true,
    });
    this.log.take();
  }

  async open(tokens?: TokenSeq, scope?: ReuseScope): Promise<KvCache> {
    const cache = this.manager.createKvCache({ tokens, scope });
    expect(await cache.resume()).toBe(true);
    return cache;
  }

  /** One request that reuses nothing, commits all tokens at once, and closes. */
  async donate(tokens: TokenSeq, scope?: ReuseScope): Promise<void> {
    const cache = await this.open(undefined, scope);
    cache.resize(tokens.length);
    cache.commit(tokens);
    cache.close();
  }

  /** What was told since the last time, in short: blocks are named by their ordinals in the sequence 0, 1, 2, … */
  told(): string[] {
    return this.log.take().map(short);
  }
}

function short(event: KvEvent): string {
  const names = (keys: readonly Uint8Array[]) => keys.map((key) => NAMES.get(keyToHex(key)) ?? '?').join(' ');
  if (event.type === 'stored') return `${event.groupId} stored ${names(event.blocks.map(({ key }) => key))}`;
  if (event.type === 'removed') return `${event.groupId} removed ${names(event.keys)}`;
  return event.type;
}

describe('a commit', () => {
  test('tells full blocks, and later only what is new', async () => {
    const desk = new Desk(model([full()]));
    const cache = await desk.open();
    cache.resize(12);
    cache.commit(seq(8));
    expect(desk.told()).toEqual(['0 stored 0 1']);
    cache.commit([8, 9]);
    expect(desk.told()).toEqual([]);
    cache.commit([10, 11]);
    expect(desk.told()).toEqual(['0 stored 2']);
    cache.close();
    expect(desk.told()).toEqual([]);
  });

  test('of blocks that another request published adds nothing, and its duplicates go silently', async () => {
    const desk = new Desk(model([full(), windowed(8)]));
    const [a, b] = [await desk.open(), await desk.open()];
    for (const each of [a, b]) each.resize(8);
    a.commit(seq(8));
    expect(desk.told()).toEqual(['0 stored 0 1', '1 stored 0 1']);
    b.commit(seq(8));
    a.close();
    b.close();
    expect(desk.told()).toEqual([]);
  });

  test('never tells private groups', async () => {
    const desk = new Desk(model([full('private'), windowed(8), recurrent('private')]));
    await desk.donate(seq(8));
    expect(desk.told()).toEqual(['1 stored 0 1']);
  });

  test('tells an optional group when the request may publish it', async () => {
    const desk = new Desk(model([full(), windowed(4, 'optional')]));
    await desk.donate(seq(8));
    expect(desk.told()).toEqual(['0 stored 0 1', '1 stored 0 1']);
    const declining = await desk.open(seq(12));
    declining.resize(12);
    declining.commit(seq(12).slice(8));
    expect(desk.told()).toEqual(['0 stored 2']);
  });

  test('tells a snapshot at the end of a block, and none inside', async () => {
    const desk = new Desk(model([full(), recurrent()]));
    const cache = await desk.open();
    cache.resize(8);
    cache.commit(seq(6));
    expect(desk.told()).toEqual(['0 stored 0']);
    cache.commit([6, 7]);
    expect(desk.told()).toEqual(['0 stored 1', '1 stored 1']);
  });

  test('is one batch, whatever it does', async () => {
    const batches: number[] = [];
    const sink = { push: (events: readonly KvEvent[]) => void batches.push(events.length) };
    const manager = new KvCacheManager({
      config: defineCacheConfig(model([full(), windowed(8)])),
      device: new HostPageDevice(),
      events: sink,
    });
    const cache = manager.createKvCache();
    await cache.resume();
    cache.resize(40);
    cache.commit(seq(40));
    cache.close();
    expect(batches).toEqual([2, 2]);
  });
});

describe('blocks that a group skips', () => {
  const config = model([full(), windowed(8)], { swaScratchReuse: { maxRewindLen: 0 } });

  test('are not told, and those behind have the right tokens and parent', async () => {
    const desk = new Desk(config);
    const cache = await desk.open();
    cache.resize(40, 0);
    cache.commit(seq(40));
    const events = desk.log.take();
    const ofWindow = events.filter((event) => event.type === 'stored' && event.groupId === 1);
    expect(ofWindow.map(short)).toEqual(['1 stored 8 9']);
    const [told] = toVllmEvents(ofWindow);
    const keys = blockKeys(seq(40), {}, 4);
    expect(ofWindow[0]).toMatchObject({ parentKey: keys[7] });
    expect(told).toMatchObject({ tokenIds: seq(40).slice(32), blockSize: 4, specKind: 'sliding_window', slidingWindow: 8 });
  });

  test('and a tail that fills no block: the tail is silent', async () => {
    const desk = new Desk(config);
    await desk.donate([50, 51, 52, 53, 54, 55]);
    for (const event of toVllmEvents(desk.log.take())) {
      expect(event).toMatchObject({ type: 'BlockStored', tokenIds: [50, 51, 52, 53] });
    }
  });
});

describe('what is removed', () => {
  test('by eviction, is told once for each group, before what took its room', async () => {
    const desk = new Desk(model([full(), windowed(8)], { slots: 4, maxUtilForResume: 1 }));
    await desk.donate(seq(16));
    expect(desk.told()).toEqual(['0 stored 0 1 2 3', '1 stored 0 1 2 3']);
    const cache = await desk.open();
    cache.resize(4);
    expect(desk.told()).toEqual(['0 removed 3', '1 removed 3']);
    cache.commit([40, 41, 42, 43]);
    expect(desk.told()).toEqual(['0 stored ?', '1 stored ?']);
  });

  test('of a page that its request still holds, is stored again when that commits', async () => {
    const desk = new Desk(model([full(), windowed(100)]));
    const cache = await desk.open();
    cache.resize(12);
    cache.commit(seq(8));
    desk.told();
    expect(dropPage(desk.manager, { tokens: seq(8), block: 1, groupId: 1 })).toBe(true);
    expect(desk.told()).toEqual(['1 removed 1']);
    cache.commit(seq(12).slice(8));
    expect(desk.told()).toEqual(['1 stored 1 2', '0 stored 2']);
  });

  test('is exactly what was stored when everything is forgotten, and then one clear', async () => {
    const desk = new Desk(model([full(), windowed(4)]));
    await desk.donate(seq(8));
    await desk.donate(seq(8), { loraId: 7 });
    desk.told();
    desk.manager.clearReusableBlocks();
    const events = desk.log.take();
    const removed = events.flatMap((event) =>
      event.type === 'removed' ? event.keys.map((key) => `${event.groupId} ${NAMES.get(keyToHex(key))}`) : [],
    );
    expect(removed.sort()).toEqual(
      ['0 0', '0 1', '0 lora 7: 0', '0 lora 7: 1', '1 0', '1 1', '1 lora 7: 0', '1 lora 7: 1'].sort(),
    );
    expect(events.filter(({ type }) => type === 'cleared')).toHaveLength(1);
    expect(events[events.length - 1].type).toBe('cleared');
  });

  test('by a plan, is told when the plan is carried out', async () => {
    const desk = new Desk(model([full(), windowed(4)]));
    const cache = await desk.open();
    cache.resize(8);
    cache.commit(seq(8));
    cache.stopCommitting();
    const plan = cache.planCommittedBlockDrop();
    cache.close();
    desk.told();
    expect(plan?.drop()).toBe(1);
    expect(desk.told()).toEqual(['1 removed 1']);
  });

  test('is everything when the manager closes, told as one clear', async () => {
    const desk = new Desk(model([full()]));
    await desk.donate(seq(8));
    desk.told();
    await desk.manager.close();
    expect(desk.told()).toEqual(['cleared']);
    await desk.manager.close();
    expect(desk.told()).toEqual([]);
  });

  test('is nothing when forgetting is refused', async () => {
    const desk = new Desk(model([full()]));
    await desk.donate(seq(8));
    await desk.open(seq(8));
    desk.told();
    expect(() => desk.manager.clearReusableBlocks()).toThrow(expect.objectContaining({ code: 'requests-open' }));
    expect(desk.told()).toEqual([]);
  });
});

describe('scopes and pictures', () => {
  test('have keys of their own, told with LoRA and salt apart', async () => {
    const desk = new Desk(model([full()]));
    const scopes = [{ loraId: 7 }, { salt: 7 }, { loraId: 7, salt: 11 }, { loraId: 11, salt: 7 }, {}];
    for (const scope of scopes) await desk.donate(seq(4), scope);
    const told = toVllmEvents(desk.log.take());
    expect(new Set(told.flatMap((event) => (event.type === 'BlockStored' ? event.blockHashes : []))).size).toBe(5);
    const identities = told.map((event) =>
      event.type === 'BlockStored' ? JSON.stringify([event.loraName, event.extraKeys]) : '',
    );
    expect(identities).toEqual([
      '["7",[["7"]]]',
      '[null,[["dynamo-cache-salt:7"]]]',
      '["7",[["7","dynamo-cache-salt:11"]]]',
      '["11",[["11","dynamo-cache-salt:7"]]]',
      '[null,null]',
    ]);
  });

  test('of pictures differ though their placeholders are the same', async () => {
    const config = model([full()], { tokensPerBlock: 8 });
    const desk = new Desk(config, { partialBlocks: true });
    const digest = new Uint8Array(32).fill(3);
    const tokens = [0, 1, digest, 3, 4, 5, 6, 7];
    await desk.donate(tokens);
    const [first] = desk.log.take();
    await desk.donate(tokens.slice(0, 6));
    expect(desk.told()).toEqual([]);
    desk.manager.clearReusableBlocks();
    desk.told();
    await desk.donate(tokens.slice(0, 6));
    const [second] = desk.log.take();
    const keyOf = (event: KvEvent) => (event.type === 'stored' ? event.blocks.map(({ key }) => key) : []);
    expect([keyOf(first), keyOf(second)]).toEqual([blockKeys(tokens, {}, 8), blockKeys(tokens.slice(0, 6), {}, 8)]);
    expect(toVllmEvents([first])[0]).toMatchObject({ tokenIds: [0, 1, 0, 3, 4, 5, 6, 7], extraKeys: [[['03'.repeat(32), 2]]] });
  });
});

describe('a sink', () => {
  test('hears of the groups first', async () => {
    const log = new EventLog();
    const manager = new KvCacheManager({
      config: defineCacheConfig(model([full(), windowed(8, 'private'), windowed(8)], { slots: [8, 16, 32] })),
      device: new HostPageDevice(),
      events: log,
    });
    const slots = (group: number) => manager.storageStatistics(0)[manager.layout.poolGroupOf(group as never)].total;
    expect(log.take()).toMatchObject([
      { type: 'created', groupId: 0, slotsPerTier: [slots(0)] },
      { type: 'created', groupId: 2, slotsPerTier: [slots(2)], lifecycle: { windowSize: 8 } },
    ]);
  });

  test('that throws, or rejects, breaks nothing and is counted', async () => {
    const errors = [() => Promise.reject(new Error('slow')), () => Promise.reject(new Error('slow'))];
    const sink = {
      push: (): unknown => {
        const next = errors.pop();
        if (next !== undefined) return next();
        throw new Error('broken');
      },
    };
    const manager = new KvCacheManager({
      config: defineCacheConfig(model([full()])),
      device: new HostPageDevice(),
      events: sink,
      debugChecks: true,
    });
    const cache = manager.createKvCache();
    await cache.resume();
    cache.resize(8);
    cache.commit(seq(4));
    cache.commit([4, 5, 6, 7]);
    cache.close();
    await Promise.resolve();
    expect(manager.statistics().failedEventPushes).toBe(3);
    expect(manager.probeReuse(seq(8))).toBe(8);
    await manager.close();
  });

  test('may look at the manager, and call it', async () => {
    const seen: number[] = [];
    const sink = { push: () => void seen.push(manager?.probeReuse(seq(8)) ?? -1) };
    let manager: KvCacheManager | undefined;
    manager = new KvCacheManager({
      config: defineCacheConfig(model([full()])),
      device: new HostPageDevice(),
      events: sink,
      debugChecks: true,
    });
    const cache = manager.createKvCache();
    await cache.resume();
    cache.resize(8);
    cache.commit(seq(8));
    cache.close();
    expect(seen).toEqual([-1, 8]);
  });
});
