import type { LayerGroupId } from '@bufferwise/core-policy';
import { describe, expect } from 'vitest';
import { checkInvariants } from '../../src/testing/index.ts';
import type { Player } from '../support/player.ts';
import { scenario } from '../support/scenario.ts';
import { full, model, recurrent, type Stage, seq, windowed } from '../support/stage.ts';

const F = 0 as LayerGroupId;
const W = 1 as LayerGroupId;

const indices = ({ kv }: Player, group: LayerGroupId) => [...kv.basePageIndices(group)];
const used = (stage: Stage, group: LayerGroupId) =>
  stage.slots(group).total - stage.slots(group).free - stage.slots(group).evictable;

scenario('a request has one index a block, as many as its capacity asks for', model([full()]), async (stage) => {
  const request = await stage.start();
  expect(request.kv.resize(8, 0)).toBe(true);
  expect(new Set(indices(request, F)).size).toBe(2);
  expect(request.kv.resize(4, 0)).toBe(true);
  expect(indices(request, F).length).toBe(1);
  expect(request.kv.resize(0, 0)).toBe(true);
  expect(indices(request, F)).toEqual([]);
});

describe('when pages run out', () => {
  // Prevents: pages of a running request taken for somebody else.
  scenario(
    'a newcomer waits and the running request keeps its pages to the end',
    model([full(), recurrent()], { slots: [12, 16], maxUtilForResume: 1 }),
    async (stage) => {
      const running = await stage.start();
      expect(running.kv.resize(40, 0)).toBe(true);
      running.compute(seq(16));
      running.commit();
      running.compute(seq(32).slice(16));
      running.commit();
      const newcomer = await stage.start();
      expect([stage.slots(F).free, newcomer.kv.resize(12, 0)]).toEqual([2, false]);
      expect(newcomer.kv.resize(8, 0)).toBe(true);
      running.compute(seq(40).slice(32));
      running.commit();
      running.verify();
    },
  );

  scenario(
    'a step that needs room in two groups takes none when one has none',
    model([full(), windowed(64)], { slots: [64, 20], maxUtilForResume: 1 }),
    async (stage) => {
      const request = await stage.start();
      expect(request.step(seq(72)) && request.settle()).toBe(true);
      const before = [stage.slots(F), stage.slots(W), indices(request, F), indices(request, W)];
      expect(request.step(seq(24))).toBe(false);
      expect([stage.slots(F), stage.slots(W), indices(request, F), indices(request, W)]).toEqual(before);
      expect(request.step(seq(8))).toBe(true);
    },
  );

  scenario(
    'a busy group makes a newcomer wait although the others are idle',
    model([full(), windowed(64)], { slots: [256, 20], maxUtilForResume: 0.8 }),
    async (stage) => {
      const busy = await stage.start();
      expect(busy.step(seq(17 * 4))).toBe(true);
      const newcomer = stage.open();
      expect([await newcomer.resume(), newcomer.kv.status]).toEqual([false, 'suspended']);
      expect(busy.kv.resize(16 * 4)).toBe(true);
      expect(await newcomer.resume()).toBe(true);
    },
  );

  scenario('what is only published makes room for it', model([full()], { slots: 8, maxUtilForResume: 1 }), async (stage) => {
    await stage.donate(seq(32), [32]);
    expect(stage.slots(F)).toEqual({ free: 0, evictable: 8, total: 8 });
    const request = await stage.start();
    expect(request.extend(seq(132).slice(100))).toBe(true);
    expect(stage.probe(seq(32))).toBe(0);
  });

  // Prevents: pages whose release came late queue up in another order than they were used.
  scenario(
    'the oldest leave first, and of one request the tail before the beginning',
    model([full()], { slots: 8, maxUtilForResume: 1 }),
    async (stage) => {
      await stage.donate(seq(16), [16]);
      await stage.donate(seq(116).slice(100), [16]);
      const request = await stage.start();
      expect(request.kv.resize(8)).toBe(true);
      expect([stage.probe(seq(16)), stage.probe(seq(116).slice(100))]).toEqual([8, 16]);
      request.close();
    },
  );

  scenario('what was reused last stays longest', model([full()], { slots: 8, maxUtilForResume: 1 }), async (stage) => {
    await stage.donate(seq(16), [16]);
    await stage.donate(seq(116).slice(100), [16]);
    (await stage.start(seq(16))).close();
    const request = await stage.start();
    expect(request.kv.resize(16)).toBe(true);
    expect([stage.probe(seq(16)), stage.probe(seq(116).slice(100))]).toEqual([16, 0]);
  });

  scenario(
    'a page that somebody claims stays, though the tree forgets it',
    model([full()], { slots: 8, maxUtilForResume: 1 }),
    async (stage) => {
      await stage.donate(seq(16), [16]);
      const claimer = stage.open(seq(16));
      stage.drop(F, seq(16), 0);
      expect(stage.probe(seq(16))).toBe(0);
      const hog = await stage.start();
      expect([hog.kv.resize(20), hog.kv.resize(16)]).toEqual([false, true]);
      expect(await claimer.resume()).toBe(true);
      claimer.verify();
      hog.close();
      expect(claimer.extend([16, 17, 18, 19])).toBe(true);
      expect(stage.probe(seq(20))).toBe(20);
    },
  );
});

// Prevents: one page listed twice after two equal requests ended in a race.
for (const order of [
  [0, 1],
  [1, 0],
]) {
  scenario(`two that computed the same own it once, closing ${order.join(' before ')}`, model([full()]), async (stage) => {
    const twins = [await stage.start(), await stage.start()];
    for (const twin of twins) expect(twin.step(seq(8))).toBe(true);
    for (const twin of twins) twin.commit();
    expect(used(stage, F)).toBe(2);
    for (const index of order) {
      twins[index].close();
      checkInvariants(stage.manager);
    }
    expect(stage.slots(F).evictable).toBe(2);
    stage.manager.clearReusableBlocks();
    expect(stage.slots(F).free).toBe(stage.slots(F).total);
  });
}

// Prevents: a plan for a constant number of drafts.
scenario(
  'drafts may change in number from step to step',
  model([full(), windowed(8), recurrent(), recurrent('private')], { commitMinSnapshot: true }),
  async (stage) => {
    const request = await stage.start();
    const ring = 3 as LayerGroupId;
    const slot = request.kv.ssmBlockBaseIndex(ring);
    let written = 0;
    const step = (drafts: number, accepted: number) => {
      const tokens = Array.from({ length: drafts + 1 }, (_, i) => (written + i) % 1000);
      expect(request.step(tokens)).toBe(true);
      written += accepted + 1;
      request.rewind(written);
      expect(request.settle(written)).toBe(true);
      request.commit(written, { snapshot: written % 7 === 0 });
      expect([request.kv.historyLength, indices(request, F).length]).toEqual([written, Math.ceil(written / 4)]);
      expect(request.kv.ssmBlockBaseIndex(ring)).toBe(slot);
    };
    step(16, 1);
    step(1, 0);
    step(16, 16);
    let random = 7;
    for (let i = 0; i < 200; i++) {
      random = (random * 48_271) % 0x7fffffff;
      const drafts = random % 17;
      step(drafts, Math.floor(random / 17) % (drafts + 1));
    }
    request.verify();
    request.close();
    const reader = await stage.start(request.text);
    expect(reader.kv.numCommittedTokens).toBe(written);
  },
);

scenario(
  'a block of several pages keeps its content through reuse, where layers cut it differently',
  {
    tokensPerBlock: 128,
    layers: [
      {
        type: 'attention',
        layerId: 0,
        buffers: [
          { role: 'key', size: 4096 },
          { role: 'value', size: 4096 },
        ],
      },
      {
        type: 'attention',
        layerId: 1,
        buffers: [
          { role: 'key', size: 2048, tokensPerBlockOverride: 64 },
          { role: 'value', size: 2048, tokensPerBlockOverride: 64 },
        ],
      },
    ],
    tiers: [{ tier: 'device', quota: 4 << 20 }],
  },
  async (stage) => {
    const first = await stage.start();
    expect(first.extend(seq(163))).toBe(true);
    for (let token = 163; token < 260; token++) expect(first.extend([token])).toBe(true);
    first.close();
    const second = await stage.start(seq(260 + 79));
    expect(second.kv.numCommittedTokens).toBe(260);
    expect(second.extend(seq(260 + 79).slice(260))).toBe(true);
  },
);

scenario(
  'a request goes on after it stopped committing, and what it published stays what it was',
  model([full(), windowed(8), recurrent()]),
  async (stage) => {
    const request = await stage.start();
    expect(request.extend(seq(10))).toBe(true);
    request.kv.stopCommitting();
    expect(request.step([90, 91, 92]) && request.settle()).toBe(true);
    const reader = await stage.start(seq(12));
    expect(reader.kv.numCommittedTokens).toBe(10);
    expect(reader.extend([10, 11])).toBe(true);
    request.verify();
  },
);

scenario(
  'nothing is published by a request that committed nothing behind its match',
  model([full(), recurrent()]),
  async (stage) => {
    await stage.donate(seq(10), [10]);
    const { blocks } = stage.manager.statistics();
    for (const end of [
      (player: Player) => player.close(),
      (player: Player) => player.kv.stopCommitting(),
      (player: Player) => player.kv.commit([], { end: true }),
    ]) {
      const reader = await stage.start(seq(10));
      expect(reader.step([50, 51])).toBe(true);
      end(reader);
    }
    expect(stage.manager.statistics().blocks).toBe(blocks);
  },
);
