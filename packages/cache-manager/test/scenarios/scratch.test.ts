import type { LayerGroupId } from '@bufferwise/core-policy';
import { describe, expect } from 'vitest';
import type { Player } from '../support/player.ts';
import { scenario } from '../support/scenario.ts';
import { full, type LayerShape, model, recurrent, type Stage, seq, windowed } from '../support/stage.ts';

const F = 0 as LayerGroupId;
const W = 1 as LayerGroupId;
const stateError = expect.objectContaining({ name: 'StateError', code: 'scratch-in-use' });

const times = (count: number, layer: LayerShape): LayerShape[] => Array.from({ length: count }, () => layer);
const range = ({ kv }: Player, group: LayerGroupId) => kv.scratch(group)?.range ?? null;
const numSlots = ({ kv }: Player, group: LayerGroupId) => kv.scratch(group)?.slotIds.length ?? 0;
const shown = ({ kv }: Player, group: LayerGroupId) =>
  [...kv.basePageIndices(group)].flatMap((index, block) => (index < 0 ? [] : [block]));
const used = (stage: Stage, group: LayerGroupId) =>
  stage.slots(group).total - stage.slots(group).free - stage.slots(group).evictable;

describe('a prefill step', () => {
  for (const [maxRewindLen, end] of [
    [0, 7],
    [64, 5],
  ]) {
    scenario(
      `of eight layers shares one slot between the blocks it outruns, with a margin of ${maxRewindLen} tokens`,
      model(times(8, windowed(32)), { tokensPerBlock: 32, swaScratchReuse: { maxRewindLen } }),
      async (stage) => {
        const request = await stage.start();
        expect(request.step(seq(256))).toBe(true);
        expect([range(request, F), numSlots(request, F)]).toEqual([{ begin: 0, end }, 1]);
        expect(shown(request, F)).toEqual([0, 1, 2, 3, 4, 5, 6, 7].slice(end));
        expect(request.settle()).toBe(true);
        expect([range(request, F), shown(request, F)]).toEqual([null, [7]]);
      },
    );
  }

  for (const [maxRewindLen, first, third] of [
    [0, { begin: 0, end: 6 }, { begin: 8, end: 9 }],
    [32, { begin: 0, end: 5 }, null],
  ] as const) {
    scenario(
      `shares slots in the short window only, and again after suspending, with a margin of ${maxRewindLen} tokens`,
      model([windowed(64), windowed(256)], { tokensPerBlock: 32, swaScratchReuse: { maxRewindLen } }),
      async (stage) => {
        const request = await stage.start();
        expect(request.step(seq(256))).toBe(true);
        expect([range(request, F), numSlots(request, F), range(request, W)]).toEqual([first, first.end, null]);
        request.commit();
        request.suspend();
        expect(await request.resume()).toBe(true);
        expect(range(request, F)).toBeNull();
        expect(request.step(seq(352).slice(256))).toBe(true);
        expect([range(request, F), range(request, W)]).toEqual([third, null]);
        expect(request.settle()).toBe(true);
        request.verify();
      },
    );
  }

  scenario(
    'of a long prompt takes far fewer slots than blocks, and leaves none behind',
    model(times(32, windowed(128)), { tokensPerBlock: 32, swaScratchReuse: {}, slots: 64 }),
    async (stage) => {
      const request = await stage.start();
      expect(request.step(seq(1024))).toBe(true);
      expect([range(request, F), numSlots(request, F), used(stage, F)]).toEqual([{ begin: 0, end: 28 }, 1, 5]);
      request.commit();
      expect([range(request, F), used(stage, F)]).toEqual([null, 4]);
    },
  );

  scenario(
    'can be taken and given back any number of times without losing a slot',
    model(times(16, windowed(8)), { swaScratchReuse: {} }),
    async (stage) => {
      const { free } = stage.slots(F);
      for (let round = 0; round < 4; round++) {
        const request = await stage.start();
        expect(request.kv.resize(64)).toBe(true);
        request.close();
        expect(stage.slots(F).free).toBe(free);
      }
    },
  );

  scenario(
    'that finds no room for its scratch changes nothing',
    model([full(), windowed(8)], { slots: [64, 7], swaScratchReuse: {}, maxUtilForResume: 1 }),
    async (stage) => {
      const request = await stage.start();
      expect(request.kv.resize(40)).toBe(false);
      expect([request.kv.capacity, range(request, W), stage.slots(W).free]).toEqual([0, null, 7]);
      expect(request.step(seq(28)) && request.settle()).toBe(true);
    },
  );
});

describe('blocks that were scratch', () => {
  // Prevents: placeholders of blocks outside the window offered to publication.
  scenario('are never published', model([full(), windowed(8)], { swaScratchReuse: {} }), async (stage) => {
    const request = await stage.start();
    expect(request.step(seq(40))).toBe(true);
    expect(range(request, W)).toEqual({ begin: 0, end: 8 });
    request.commit();
    request.close();
    expect([stage.probe(seq(40)), stage.probe(seq(24))]).toEqual([40, 0]);
    const reader = await stage.start(seq(41));
    expect(reader.extend([40, 41])).toBe(true);
    expect(stage.pagesOf(W, seq(40))).toEqual([8, 9]);
  });

  // Prevents: a block computed into scratch, published as the page that it had before.
  scenario(
    'are not published by the page that they had in an earlier step',
    model([windowed(4)], { swaScratchReuse: {} }),
    async (stage) => {
      const request = await stage.start();
      expect(request.step(seq(4))).toBe(true);
      request.rewind(0);
      expect(request.step(seq(16))).toBe(true);
      expect(range(request, F)).toEqual({ begin: 0, end: 3 });
      request.commit();
      request.close();
      expect([stage.probe(seq(16)), stage.probe(seq(4))]).toEqual([16, 0]);
      expect(stage.pagesOf(F, seq(16))).toEqual([3]);
    },
  );

  // Prevents: an exact path whose window pages are absent hides a sibling that has them.
  scenario(
    'do not hide a shorter end that an earlier request left',
    model([full(), windowed(4)], { swaScratchReuse: {} }),
    async (stage) => {
      await stage.donate(seq(6), [6], { end: true });
      await stage.donate(seq(16), [16]);
      expect([stage.probe(seq(6)), stage.probe(seq(16))]).toEqual([6, 16]);
      const reader = await stage.start(seq(6));
      expect(reader.extend([9, 9, 9])).toBe(true);
    },
  );

  scenario(
    'leave the pages of the last blocks to a reader that ends inside one',
    model([windowed(64)], { tokensPerBlock: 32, swaScratchReuse: {}, commitMinSnapshot: false }),
    async (stage) => {
      const request = await stage.start();
      expect(request.step(seq(127))).toBe(true);
      request.commit();
      request.close();
      expect(stage.probe(seq(200))).toBe(127);
      const reader = await stage.start(seq(200));
      expect(reader.extend(seq(200).slice(127))).toBe(true);
    },
  );
});

describe('a step with scratch', () => {
  // Prevents: scratch given to a speculative tail that is taken back later.
  scenario(
    'keeps a margin in pages: drafts inside it may be rejected',
    model([windowed(4)], { swaScratchReuse: { maxRewindLen: 4 } }),
    async (stage) => {
      const request = await stage.start();
      expect(request.step(seq(16))).toBe(true);
      expect([range(request, F), shown(request, F)]).toEqual([{ begin: 0, end: 2 }, [2, 3]]);
      request.rewind(14);
      expect(request.settle(14)).toBe(true);
      request.verify();
      request.commit();
      expect(request.extend([7, 7])).toBe(true);
    },
  );

  for (const maxRewindLen of [0, 4]) {
    scenario(
      `is not shrunk, with a margin of ${maxRewindLen} tokens`,
      model([windowed(4)], { swaScratchReuse: { maxRewindLen } }),
      async (stage) => {
        const request = await stage.start();
        expect(request.step(seq(16))).toBe(true);
        const scratch = range(request, F);
        expect(() => request.kv.resize(12, 0)).toThrow(stateError);
        expect(() => request.kv.resize(11, 11)).toThrow(stateError);
        expect([request.kv.capacity, request.kv.historyLength, range(request, F)]).toEqual([16, 0, scratch]);
        request.commit();
      },
    );
  }

  scenario(
    'without a margin refuses to go back, to grow from the middle, and to commit in parts',
    model([windowed(4)], { swaScratchReuse: {} }),
    async (stage) => {
      const request = await stage.start();
      expect(request.step(seq(16))).toBe(true);
      expect(() => request.kv.resize(14, 14)).toThrow(stateError);
      expect(() => request.kv.resize(20, 15)).toThrow(stateError);
      expect(() => request.kv.commit(seq(15))).toThrow(stateError);
      expect([request.kv.capacity, request.kv.historyLength, request.kv.numCommittedTokens]).toEqual([16, 0, 0]);
      request.commit();
      expect(request.kv.numCommittedTokens).toBe(16);
    },
  );

  scenario('may be committed in parts once history covers it', model([windowed(4)], { swaScratchReuse: {} }), async (stage) => {
    const request = await stage.start();
    expect(request.step(seq(16)) && request.settle()).toBe(true);
    request.commit(13);
    request.commit(16);
    request.close();
    expect(stage.probe(seq(16))).toBe(16);
  });

  scenario(
    'gives its scratch back when it is suspended, and takes it again',
    model([full(), windowed(8), recurrent()], { swaScratchReuse: {} }),
    async (stage) => {
      const request = await stage.start();
      expect(request.step(seq(40))).toBe(true);
      const before = used(stage, W);
      request.suspend();
      expect([range(request, W), used(stage, W)]).toEqual([null, before - 8]);
      expect(await request.resume()).toBe(true);
      expect([range(request, W), used(stage, W)]).toEqual([{ begin: 0, end: 8 }, before]);
      request.compute(seq(40));
      request.commit();
    },
  );
});

// Prevents: scratch counted twice across two chunks, or a scratch slot that is somebody`s page.
scenario(
  'two chunks of a prompt share scratch in turn, also where layers have unequal numbers of buffers',
  model([full(), { ...windowed(8), roles: ['a', 'b', 'c'] }, { ...windowed(8), roles: ['d'] }], {
    commitMinSnapshot: true,
    swaScratchReuse: {},
  }),
  async (stage) => {
    const request = await stage.start();
    const pages = () => used(stage, W) - numSlots(request, W);
    expect(request.step(seq(40))).toBe(true);
    expect([range(request, W), numSlots(request, W), pages()]).toEqual([{ begin: 0, end: 8 }, 6, 2]);
    expect(request.step(seq(80).slice(40))).toBe(true);
    expect([range(request, W), numSlots(request, W), pages(), shown(request, W)]).toEqual([
      { begin: 10, end: 18 },
      6,
      4,
      [8, 9, 18, 19],
    ]);
    expect(request.settle()).toBe(true);
    expect([range(request, W), numSlots(request, W), pages(), used(stage, W)]).toEqual([null, 0, 2, 2]);
    request.verify();
  },
);

scenario(
  'scratch of different policies never shares an address',
  model([windowed(8), windowed(8, 'optional'), windowed(8, 'private')], { swaScratchReuse: {} }),
  async (stage) => {
    const request = await stage.start();
    expect(request.step(seq(64))).toBe(true);
    const poolGroups = [0, 1, 2].map((group) => stage.manager.layout.poolGroupOf(group as LayerGroupId));
    expect(new Set(poolGroups).size).toBe(3);
    request.commit();
    request.close();
    expect((await stage.start(seq(64), { select: [1] })).kv.numCommittedTokens).toBe(64);
  },
);
