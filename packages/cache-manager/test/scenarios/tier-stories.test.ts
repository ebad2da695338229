import type { LayerGroupId, LifecycleId } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import { checkInvariants, dropPage } from '../../src/testing/index.ts';
import { stateOf } from '../../src/testing/manager-registry.ts';
import { UnreadableDevice } from '../support/failing-tiers.ts';
import type { Player } from '../support/player.ts';
import { QueueLog } from '../support/queue-log.ts';
import { scenario } from '../support/scenario.ts';
import { full, GRAIN_BYTES, type LayerShape, model, recurrent, Stage, seq, windowed } from '../support/stage.ts';

const F = 0 as LayerGroupId;
const W = 1 as LayerGroupId;
/** Tokens that no other text begins with. */
const text = (name: number, count: number) => seq(count).map((token) => name * 1000 + token);
const tight = { maxUtilForResume: 1 };

/** Pages that a request lost on the way are computed again. */
async function resumeAgain(player: Player): Promise<void> {
  const answer = await player.resume().catch((error: unknown) => error);
  if (answer === true) return;
  expect(answer).toMatchObject({ code: 'pages-lost' });
  player.beginAgain();
  expect(await player.resume()).toBe(true);
}

describe('a policy', () => {
  // Reference case P6.
  scenario(
    'keeps its pages in pools of its own in colder tiers too',
    model([windowed(8, 'optional'), windowed(8, 'private'), windowed(8)], { hostSlots: 8, diskSlots: 8 }),
    async (stage) => {
      const { layout } = stage.manager;
      const groups = [0, 1, 2].map((group) => layout.coldPoolGroupOf(group as LifecycleId));
      expect(new Set(groups).size).toBe(3);
      for (const tier of [0, 1, 2]) expect(stage.manager.storageStatistics(tier)).toHaveLength(3);
    },
  );

  // Mission R15: what is private stays with its request, wherever it is carried.
  scenario(
    'that is private carries pages down and back for their own request only',
    model([full(), windowed(8, 'private'), recurrent('private')], { ...tight, slots: [8, 8, 2], hostSlots: 12, diskSlots: 12 }),
    async (stage) => {
      const owner = await stage.start();
      expect(owner.extend(text(1, 28))).toBe(true);
      owner.suspend();
      const others = [];
      for (let name = 2; name < 2 + stage.slots(2).total; name++) others.push(await stage.start());
      expect(others[0].extend(text(2, 28))).toBe(true);
      await stage.manager.settled();
      expect([1, 2].map((group) => stage.traffic(group).offloaded > 0)).toEqual([true, true]);
      expect(stage.pagesOf(1, text(1, 28))).toEqual([]);
      for (const other of others) other.close();
      expect(await owner.resume()).toBe(true);
      expect(owner.extend([1, 2, 3])).toBe(true);
    },
  );
});

// Reference case P4.
scenario(
  'a hybrid request commits, gives way, comes back and closes; its prefix is whole',
  model([full(), recurrent()]),
  async (stage) => {
    const first = await stage.start();
    expect(first.extend(seq(12))).toBe(true);
    first.suspend();
    expect(await first.resume()).toBe(true);
    first.close();
    const reader = await stage.start(seq(12));
    expect(reader.kv.numCommittedTokens).toBe(12);
  },
);

// Reference case P8: losing a page of one optional group takes the entry of another with it, because that one is on the move.
test('a page on its way back outlives that another group loses its page of the same block', async () => {
  const device = new QueueLog();
  const config = model([full(), windowed(4, 'optional'), windowed(2, 'optional')], { ...tight, slots: 4, hostSlots: 8 });
  const stage = new Stage(config, device);
  await stage.donate(text(1, 8), [8]);
  const reader = stage.open(text(1, 8));
  device.holdsReads = true;
  const taker = await stage.start();
  expect(taker.step(text(2, 16))).toBe(true);
  taker.close();
  const going = reader.resume({ optionalReuseGroups: [2 as LayerGroupId] });
  for (let i = 0; i < 20; i++) await Promise.resolve();
  expect(stateOf(stage.manager).storage.landings.any).toBe(true);
  expect(dropPage(stage.manager, { tokens: text(1, 8), block: 1, groupId: 1 })).toBe(true);
  checkInvariants(stage.manager);
  device.holdsReads = false;
  await device.landReads();
  expect(await going).toBe(true);
  reader.close();
  expect(stage.open(text(1, 8)).kv.reuseStatus.map(({ complete }) => complete)).toEqual([true, false, true]);
  stage.drop(2, text(1, 8), 1);
  expect(stage.probe(text(1, 8))).toBe(8);
  await stage.finish();
});

describe('a tier that becomes smaller', () => {
  // Reference case Q11.
  scenario(
    'ends at its size when the upper half of slots that all were in use is free again',
    model([full()], { ...tight, slots: 16, hostSlots: 16 }),
    async (stage) => {
      const pageBytes = stage.manager.storageStatistics(1)[0].slotBytes;
      const players = [];
      for (const name of [1, 2]) {
        const player = await stage.start();
        expect(player.extend(text(name, 32))).toBe(true);
        player.suspend();
        players.push(player);
      }
      const hog = await stage.start();
      expect(hog.step(text(3, 64))).toBe(true);
      await stage.manager.settled();
      expect(stage.slots(0, 1)).toMatchObject({ free: 0, total: 16 });
      players[1].close();
      stage.manager.storageStatistics(1);
      expect(await stage.manager.resizeTier(1, 8 * pageBytes)).toBe(true);
      expect(stage.slots(0, 1)).toMatchObject({ total: 8 });
      hog.close();
      expect(await players[0].resume()).toBe(true);
    },
  );

  // Reference case 11.4: shrinking the last tier passes over pages that suspended requests hold.
  scenario(
    'and is the last carries what suspended requests hold, and drops none of it',
    model([full()], { ...tight, slots: 8, hostSlots: 16 }),
    async (stage) => {
      const pageBytes = stage.manager.storageStatistics(1)[0].slotBytes;
      await stage.donate(text(1, 32), [32]);
      const held = await stage.start();
      expect(held.extend(text(2, 32))).toBe(true);
      held.suspend();
      const hog = await stage.start();
      expect(hog.step(text(3, 32))).toBe(true);
      await stage.manager.settled();
      expect(stage.slots(0, 1)).toMatchObject({ free: 0, evictable: 8 });
      expect(await stage.manager.resizeTier(1, 7 * pageBytes)).toBe(false);
      expect(await stage.manager.resizeTier(1, 8 * pageBytes)).toBe(true);
      expect([stage.slots(0, 1), stage.traffic(0).dropped, stage.probe(text(1, 32))]).toEqual([
        { free: 0, evictable: 0, total: 8 },
        8,
        0,
      ]);
      hog.close();
      expect(await held.resume()).toBe(true);
    },
  );
});

describe('statistics across tiers', () => {
  const config = model([full(), recurrent()], { ...tight, slots: [4, 2], hostSlots: 5 });

  // Reference cases A14 and A15.
  scenario('count pages and bytes of attention and state that go down, come back, and are dropped', config, async (stage) => {
    const { manager } = stage;
    const bytes = [F, W].map((group) => manager.storageStatistics(0)[manager.layout.poolGroupOf(group)].slotBytes);
    const first = await stage.start();
    expect(first.extend(text(1, 12))).toBe(true);
    first.suspend();
    const others: Player[] = [];
    manager.takeIterationStatistics();
    for (let name = 1; name < stage.slots(W).total + 1; name++) others.push(await stage.start());
    expect(others[0].step(text(2, 16))).toBe(true);
    await manager.settled();
    expect(stage.traffic(F).offloaded).toBe(3);
    expect(stage.traffic(W).offloaded).toBeGreaterThan(0);
    for (const other of others) other.close();
    manager.takeIterationStatistics();
    expect(await first.resume()).toBe(true);
    const back = manager.takeIterationStatistics();
    expect(back.get(F)).toMatchObject({ onboardedPages: 3, onboardedBytes: 3 * bytes[F], missedPages: 0 });
    expect(back.get(W)).toMatchObject({ onboardedPages: 1, onboardedBytes: bytes[W] });
    first.close();
    manager.takeIterationStatistics();
    const seen = [F, W].map(() => ({ offloaded: 0, dropped: 0 }));
    for (let name = 3; name < 14; name++) {
      await stage.donate(text(name, 16), [4, 8, 12, 16]);
      await manager.settled();
      for (const [group, counts] of manager.takeIterationStatistics()) {
        expect(counts.offloadedBytes).toBe(counts.offloadedPages * bytes[group]);
        expect(counts.droppedBytes).toBe(counts.droppedPages * bytes[group]);
        seen[group].offloaded += counts.offloadedPages;
        seen[group].dropped += counts.droppedPages;
      }
    }
    for (const { offloaded, dropped } of seen) expect([offloaded > 0, dropped > 0]).toEqual([true, true]);
  });

  // Failure B41: requests that gave way and come back are counted as new look-ups.
  scenario(
    'keep the hit rate of requests that went through the host, which only tier counts show',
    model([full()], { ...tight, slots: 12, hostSlots: 24 }),
    async (stage) => {
      const { manager } = stage;
      await stage.donate(text(1, 8), [8]);
      manager.takeRequestStatistics();
      manager.takeIterationStatistics();
      const reader = await stage.start(text(1, 40));
      expect(reader.step(text(1, 40).slice(8))).toBe(true);
      expect(reader.settle()).toBe(true);
      for (let round = 0; round < 10; round++) {
        reader.suspend();
        if (round < 2) {
          const hog = await stage.start();
          expect(hog.step(text(2 + round, 48))).toBe(true);
          hog.close();
          await manager.settled();
        }
        expect(await reader.resume()).toBe(true);
      }
      const { hitTokens, promptTokens, hitRate, resumed } = manager.takeRequestStatistics();
      expect({ hitTokens, promptTokens, hitRate, resumed }).toEqual({
        hitTokens: 8,
        promptTokens: 40,
        hitRate: 0.2,
        resumed: 10,
      });
      expect(stage.traffic(F).onboarded).toBe(20);
      expect(manager.takeIterationStatistics().get(F)).toMatchObject({ reusedPages: 2, missedPages: 8, onboardedPages: 20 });
    },
  );
});

describe('two requests that need the room of each other', () => {
  // Failure B44: each has taken part of what it needs, and waits for the rest for ever.
  scenario(
    'are both refused unchanged; one gives way, and both finish',
    model([full()], { ...tight, slots: 7, hostSlots: 4 }),
    async (stage) => {
      const [a, b] = [await stage.start(), await stage.start()];
      expect(a.extend(text(1, 16)) && b.extend(text(2, 12))).toBe(true);
      const before = stage.manager.inspect();
      expect([a.step(text(1, 17).slice(16)), b.step(text(2, 13).slice(12))]).toEqual([false, false]);
      expect(stage.manager.inspect()).toEqual(before);
      b.suspend();
      expect(a.extend(text(1, 20).slice(16))).toBe(true);
      a.close();
      expect(await b.resume()).toBe(true);
      expect(b.extend(text(2, 16).slice(12))).toBe(true);
      b.close();
      await stage.manager.settled();
      const { free, evictable, total } = stage.slots(F);
      expect(free + evictable).toBe(total);
    },
  );

  scenario(
    'and give way both at once come back one after the other, whichever asks first',
    model([full(), windowed(8), recurrent()], { ...tight, slots: [8, 8, 2], hostSlots: 4, diskSlots: 16 }),
    async (stage) => {
      const players: Player[] = [];
      for (const name of [1, 2, 3]) {
        const player = await stage.start();
        expect(player.extend(text(name, 24))).toBe(true);
        player.suspend();
        players.push(player);
        await stage.manager.settled();
      }
      for (const order of [
        [0, 1, 2],
        [2, 0, 1],
      ]) {
        const answers = await Promise.all(order.map((index) => players[index].resume()));
        expect(answers).toContain(true);
        for (const player of players) if (player.kv.status === 'active') player.suspend();
        await stage.manager.settled();
      }
      for (const player of players) {
        expect(await player.resume()).toBe(true);
        player.close();
      }
    },
  );
});

describe('a page that is lost in a colder tier', () => {
  /** A request of 24 tokens that lies in the host, where read number `lost` did not arrive. */
  async function offloaded(layers: readonly LayerShape[], lost: (call: number) => boolean) {
    const config = model(layers, { ...tight, slots: layers.map(({ type }) => (type === 'ssm' ? 6 : 8)), hostSlots: 24 });
    const device = new UnreadableDevice(lost);
    const stage = new Stage(config, device);
    return { stage, device };
  }

  // Failure B46: the place to begin again is right for one group only.
  test('lets its request begin again where all groups agree', async () => {
    const { stage } = await offloaded([full(), windowed(8), recurrent()], () => false);
    await stage.donate(text(1, 24), [8, 16, 24]);
    const reader = stage.open([...text(1, 24), 5]);
    expect(reader.kv.numCommittedTokens).toBe(24);
    reader.close();
    // As if the page of block 3 had not come back.
    stage.drop(F, text(1, 24), 3);
    const next = await stage.start([...text(1, 24), 5]);
    expect(next.kv.matchDepths).toEqual({ path: 12, withoutState: 12, usable: 8 });
    expect(next.extend([...text(1, 24), 5].slice(8))).toBe(true);
    await stage.finish();
  });

  test('costs the request that holds it what lies behind, and no more', async () => {
    for (let failAt = 1; ; failAt++) {
      const { stage, device } = await offloaded([full(), windowed(8), recurrent()], (call) => call === failAt);
      const player = await stage.start();
      for (const count of [8, 16, 24]) expect(player.extend(text(1, count).slice(player.numComputed))).toBe(true);
      player.suspend();
      // A page at a time, so that one read is one page.
      for (let name = 2; name < 12; name++) {
        const hog = await stage.start();
        if (hog.step(text(name, 4 * (name - 1)))) hog.settle();
        hog.close();
        await stage.manager.settled();
      }
      await resumeAgain(player);
      expect([0, 8, 16, 24]).toContain(player.numComputed);
      expect(player.extend(text(1, 25).slice(player.numComputed))).toBe(true);
      expect(player.kv.lostTokens).toBe(0);
      await stage.finish();
      if (device.numReads < failAt) break;
    }
  });

  // Failure B47: the report of a failed page of one group is taken for the page of that number in another.
  test('is of its own group: the page of the same slot in another group stays', async () => {
    const stage = new Stage(
      model([full(), windowed(8)], { ...tight, slots: 4, hostSlots: 16 }),
      new UnreadableDevice((call) => call === 2),
    );
    await stage.donate(text(1, 16), [16]);
    const taker = await stage.start();
    expect(taker.step(text(2, 16))).toBe(true);
    await stage.manager.settled();
    const lost = [F, W].map((group) => stage.traffic(group).lost);
    expect(lost.filter((count) => count > 0)).toHaveLength(1);
    const whole = lost[0] === 0 ? F : W;
    expect(stage.traffic(whole)).toMatchObject({ lost: 0, offloaded: 4 });
    taker.close();
    const kept = stage.pagesOf(whole, text(1, 16));
    // Full attention takes along what hangs behind a page that it lost; a window does not.
    expect(kept).toEqual(whole === F ? [0, 1, 2, 3] : []);
    await stage.finish();
  });

  // Failure B68: keys and values are there, the index beside them is not.
  for (const [policy, match] of [
    ['required', 8],
    ['optional', 16],
  ] as const) {
    scenario(
      `of an index that is ${policy} ${policy === 'required' ? 'ends the match before it' : 'makes the index incomplete, and no more'}`,
      model([full(), { ...full(policy), sparsityGroup: 'index' } as LayerShape]),
      async (stage) => {
        await stage.donate(seq(16), [16]);
        // From the back, as losing a required page takes along what hangs behind.
        for (const block of [3, 2]) stage.drop(W, seq(16), block);
        const reader = await stage.start(seq(20));
        expect(reader.kv.numCommittedTokens).toBe(match);
        if (policy === 'required') return;
        expect(reader.kv.reuseStatus[W]).toMatchObject({ complete: false, coverage: [] });
        await expect(stage.open(seq(20)).resume({ optionalReuseGroups: [W] })).rejects.toMatchObject({
          name: 'ReuseSelectionError',
        });
      },
    );
  }
});

// Failure B77: one tier is cleared, and another answers with what was there.
scenario(
  'forgetting everything forgets it in every tier, and nothing while a request is open',
  model([full()], { ...tight, slots: 4, hostSlots: 4, diskSlots: 8 }),
  async (stage) => {
    for (const name of [1, 2, 3]) {
      await stage.donate(text(name, 16), [16]);
      await stage.manager.settled();
    }
    expect(stage.used(F)).toEqual([4, 4, 4]);
    const open = stage.open();
    expect(() => stage.manager.clearReusableBlocks()).toThrow(expect.objectContaining({ code: 'requests-open' }));
    expect([1, 2, 3].map((name) => stage.probe(text(name, 16)))).toEqual([16, 16, 16]);
    open.close();
    stage.manager.clearReusableBlocks();
    expect([1, 2, 3].map((name) => stage.probe(text(name, 16)))).toEqual([0, 0, 0]);
    await stage.manager.settled();
    expect(stage.used(F)).toEqual([0, 0, 0]);
  },
);

describe('room that a config asks for', () => {
  // Reference case S10.
  test('is there for every request of the batch: 32 requests of one token each go on at once', async () => {
    const stage = new Stage({
      tokensPerBlock: 4,
      layers: [{ type: 'attention', layerId: 0, buffers: [{ role: 'kv', size: GRAIN_BYTES / 8 }] }],
      tiers: [{ tier: 'device', quota: 1 }],
      maxUtilForResume: 0.95,
      constraints: [{ kvCaches: Array.from({ length: 32 }, () => ({ capacity: 1, historyLength: 0 })) }],
    });
    for (let name = 0; name < 32; name++) {
      const player = stage.open();
      expect(await player.resume()).toBe(true);
      expect(player.step([name])).toBe(true);
    }
    await stage.finish();
  });

  // Reference case S11.
  test.each([0, 64, 50, 256])(
    'is there for a batch that shares a prompt of %i tokens, once that was committed',
    async (shared) => {
      const kvCaches = Array.from({ length: 4 }, () => ({ capacity: 512, historyLength: shared }));
      const stage = new Stage({
        tokensPerBlock: 32,
        layers: [
          {
            type: 'attention',
            layerId: 0,
            slidingWindowSize: 128,
            numSinkTokens: 32,
            buffers: [{ role: 'kv', size: GRAIN_BYTES / 4 }],
          },
          { type: 'attention', layerId: 1, buffers: [{ role: 'kv', size: GRAIN_BYTES / 8 }] },
        ],
        tiers: [{ tier: 'device', quota: 1 }],
        maxUtilForResume: 1,
        constraints: [{ kvCaches, systemPromptLength: shared }],
      });
      if (shared > 0) await stage.donate(text(1, shared), [shared]);
      const players = [];
      for (let name = 0; name < 4; name++) {
        const player = await stage.start([...text(1, shared), name + 5]);
        expect(player.kv.numCommittedTokens).toBe(shared);
        players.push(player);
      }
      for (const player of players) expect(player.kv.resize(512, shared)).toBe(true);
      await stage.finish();
    },
  );

  // Reference case 11.15: the floor of a small window came out as one page, and decoding stood still.
  scenario(
    'holds the worst phase of a window: a request decodes on in the fewest slots there may be',
    model([windowed(8)], { ...tight, slots: 3 }),
    async (stage) => {
      const player = await stage.start();
      for (let token = 0; token < 64; token++) expect(player.extend([token], { snapshot: false }), `token ${token}`).toBe(true);
      player.verify();
    },
  );
});
