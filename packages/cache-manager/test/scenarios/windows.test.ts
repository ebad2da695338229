import type { LayerGroupId } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import { checkInvariants } from '../../src/testing/index.ts';
import type { Player } from '../support/player.ts';
import { scenario } from '../support/scenario.ts';
import { full, model, Stage, seq, windowed } from '../support/stage.ts';

const F = 0 as LayerGroupId;
const W = 1 as LayerGroupId;

const indices = ({ kv }: Player, group: LayerGroupId) => [...kv.basePageIndices(group)];
const shown = (player: Player, group: LayerGroupId) =>
  indices(player, group).flatMap((index, block) => (index < 0 ? [] : [block]));
const used = (stage: Stage, group: LayerGroupId) =>
  stage.slots(group).total - stage.slots(group).free - stage.slots(group).evictable;

describe('pages that left the window', () => {
  // Prevents: a window cache that frees a page and lists it again, which frees it twice.
  scenario(
    'are freed once, however often the same text is committed',
    model([windowed(8)], { commitMinSnapshot: true }),
    async (stage) => {
      const { total } = stage.slots(F);
      for (let round = 0; round < 2; round++) {
        await stage.donate(seq(24), [24]);
        expect(stage.slots(F)).toEqual({ free: total - 2, evictable: 2, total });
      }
      expect(stage.pagesOf(F, seq(24))).toEqual([4, 5]);
    },
  );

  // Prevents: a stale map from positions to slots, through which closing one request frees what another one now owns.
  scenario(
    'are free at once, and closing their former owner leaves the new one alone',
    model([full(), windowed(8)], { commitMinSnapshot: true }),
    async (stage) => {
      const first = await stage.start();
      expect(first.extend(seq(40))).toBe(true);
      expect(first.step(seq(60).slice(40))).toBe(true);
      const leaving = indices(first, W).slice(10, 13);
      expect(first.settle()).toBe(true);
      expect(shown(first, W)).toEqual([13, 14]);
      expect(stage.slots(W).evictable).toBe(2);

      const second = await stage.start();
      expect(second.step(seq(120).slice(100))).toBe(true);
      expect(indices(second, W)).toEqual(expect.arrayContaining(leaving));
      const before = used(stage, W);
      first.close();
      expect(used(stage, W)).toBe(before - 2);
      expect(second.settle()).toBe(true);
      second.verify();
      expect(second.extend([7, 7, 7])).toBe(true);
    },
  );

  // Prevents: freeing by hoped-for tokens of a draft, while the step that reads the page has not run.
  for (const accepted of [0, 1, 4]) {
    scenario(
      `stay readable until history says so, with ${accepted} of four draft tokens accepted`,
      model([windowed(16)], { tokensPerBlock: 16 }),
      async (stage) => {
        const request = await stage.start();
        expect(request.step(seq(94)) && request.settle()).toBe(true);
        expect(request.step([1, 2, 3, 4])).toBe(true);
        expect(shown(request, F)).toEqual([4, 5, 6]);
        request.rewind(94 + accepted);
        expect(request.settle()).toBe(true);
        expect(shown(request, F)).toEqual(accepted === 0 ? [4, 5, 6] : [5, 6]);
        request.verify();
      },
    );
  }

  scenario(
    'a required window keeps what a match inside its last blocks needs, and no more',
    model([windowed(64)], { tokensPerBlock: 32, commitMinSnapshot: true }),
    async (stage) => {
      const request = await stage.start();
      expect(request.step(seq(128)) && request.settle()).toBe(true);
      request.commit();
      request.close();
      expect([stage.probe(seq(128)), stage.probe(seq(96))]).toEqual([128, 0]);
      expect(stage.pagesOf(F, seq(128))).toEqual([2, 3]);
    },
  );
});

describe('a request that fills a hole in a window', () => {
  // Prevents: filling the hole replaces the full-attention page that somebody reads, or stops half-way.
  scenario(
    'leaves the other groups` pages of the first owner where they are',
    model([full(), windowed(8)], { commitMinSnapshot: true }),
    async (stage) => {
      const second = await stage.start();
      const first = await stage.start();
      expect(first.extend(seq(16))).toBe(true);
      const before = indices(first, F);
      expect(second.extend(seq(8)) && second.extend(seq(16).slice(8))).toBe(true);
      expect(indices(first, F)).toEqual(before);
      second.close();
      first.verify();
      expect([used(stage, F) + stage.slots(F).evictable, used(stage, W) + stage.slots(W).evictable]).toEqual([4, 4]);
      expect(stage.pagesOf(W, seq(16))).toEqual([0, 1, 2, 3]);
    },
  );

  // Prevents: forgetting between chunks which window pages were never kept, so that a match runs over a hole.
  scenario(
    'in chunks leaves matches exactly where a window is whole',
    model([full(), windowed(8)], { commitMinSnapshot: true }),
    async (stage) => {
      await stage.donate(seq(40), [12, 24, 36, 40]);
      expect([12, 20, 24, 32, 36, 40].map((count) => stage.probe(seq(count)))).toEqual([12, 12, 24, 24, 36, 40]);
      for (const count of [20, 36]) expect((await stage.start(seq(count))).kv.numCommittedTokens).toBe(count === 20 ? 12 : 36);
    },
  );
});

// Prevents: a count that is raised while an entry has no page and lowered when it has another.
for (const order of ['claimer first', 'newcomer first']) {
  scenario(
    `a claim outlives that its page left the tree and another came, closing the ${order}`,
    model([full(), windowed(8)]),
    async (stage) => {
      await stage.donate(seq(16), [8, 16]);
      const claimer = stage.open(seq(16));
      expect(claimer.kv.numCommittedTokens).toBe(16);
      stage.drop(W, seq(16), 2);
      const newcomer = await stage.start(seq(16));
      expect(newcomer.kv.numCommittedTokens).toBe(8);
      expect(newcomer.extend(seq(16).slice(8))).toBe(true);
      expect(await claimer.resume()).toBe(true);
      expect(indices(claimer, W)[2]).not.toBe(indices(newcomer, W)[2]);
      expect(stage.open(seq(16)).kv.numCommittedTokens).toBe(16);
      for (const player of order === 'claimer first' ? [claimer, newcomer] : [newcomer, claimer]) {
        player.close();
        checkInvariants(stage.manager);
      }
    },
  );
}

// Prevents: admission by the whole prompt in a group that never holds more than its window.
scenario(
  'a prompt a hundred times as long as the pool goes through a window step by step',
  model([windowed(64)], { tokensPerBlock: 16, slots: 12, maxUtilForResume: 1 }),
  async (stage) => {
    const request = await stage.start();
    let most = 0;
    for (let count = 64; count <= 1248; count += 64) {
      expect(request.extend(seq(Math.min(count, 1248)).slice(request.numComputed)), `step to ${count}`).toBe(true);
      most = Math.max(most, used(stage, F));
    }
    expect(request.extend(seq(1248).slice(request.numComputed))).toBe(true);
    expect(most).toBeLessThanOrEqual(8);
  },
);

test('a window of one token needs no page where a block ends', async () => {
  const stage = new Stage(model([full(), windowed(1)], { tokensPerBlock: 32, commitMinSnapshot: true }));
  await stage.donate(seq(80), [80]);
  await stage.donate(seq(96), [96]);
  expect([stage.probe(seq(96)), stage.probe(seq(80)), stage.probe(seq(64))]).toEqual([96, 80, 64]);
  const reader = await stage.start(seq(96));
  expect([shown(reader, W), reader.extend([5, 5, 5])]).toEqual([[], true]);
  await stage.finish();
});

scenario(
  'stale blocks that a received history never allocates do not stand in the way of a commit',
  model([full(), windowed(128)], { tokensPerBlock: 32 }),
  async (stage) => {
    const receiver = await stage.start();
    expect(receiver.kv.resize(512, 512)).toBe(true);
    expect(shown(receiver, W)).toEqual([12, 13, 14, 15]);
    receiver.receive(seq(512));
    receiver.commit();
    receiver.close();
    const reader = await stage.start(seq(520));
    expect(reader.kv.numCommittedTokens).toBe(512);
    expect(stage.probe(seq(480))).toBe(0);
  },
);

// Prevents: a host table that a later step overwrites while the device still reads it.
scenario(
  'a table copied when a step is put together names that step`s pages, whatever happens to the request later',
  model([full(), windowed(4)], { commitMinSnapshot: true }),
  async (stage) => {
    const first = await stage.start();
    expect(first.step(seq(8)) && first.settle()).toBe(true);
    const submitted = first.kv.basePageIndices(W).slice();
    expect(first.step([8, 9, 10, 11]) && first.settle()).toBe(true);
    const second = await stage.start();
    expect(second.step(seq(4))).toBe(true);
    expect(indices(second, W)[0]).toBe(submitted[1]);
    expect([...submitted].map((index) => index >= 0)).toEqual([false, true]);
    expect(shown(first, W)).toEqual([2]);
  },
);
