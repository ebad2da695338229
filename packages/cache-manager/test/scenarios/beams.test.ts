import { StateError } from '@bufferwise/core-policy';
import { expect, test } from 'vitest';
import { scenario } from '../support/scenario.ts';
import { full, model, recurrent, Stage, seq, windowed } from '../support/stage.ts';

const refusal = (code: string) => expect.objectContaining({ name: 'StateError', code });

/** Tokens that no other beam writes. */
const own = (beam: number, count: number) => Array.from({ length: count }, (_, i) => 1000 * (beam + 1) + i);

/** Page indices of a group in each beam. */
const tables = (kv: { beamWidth: number; basePageIndices(group: never, beam: number): Int32Array }, group: number) =>
  Array.from({ length: kv.beamWidth }, (_, beam) => [...kv.basePageIndices(group as never, beam)]);

scenario(
  'beams share the full blocks they have in common, and have a partial block and a state of their own',
  model([full(), windowed(6), recurrent()]),
  async (stage) => {
    const player = await stage.start();
    expect(player.extend(seq(10))).toBe(true);
    const pages = () => stage.manager.statistics().groups.map((group) => group.pages);
    const before = pages();
    expect(player.forkBeams(3)).toBe(true);
    expect(player.kv.beamWidth).toBe(3);
    for (const group of [0, 1]) {
      const [first, ...others] = tables(player.kv, group);
      for (const other of others) expect(other.slice(0, 2)).toEqual(first.slice(0, 2));
      expect(new Set([first, ...others].map((table) => table[2])).size).toBe(3);
    }
    expect(new Set([0, 1, 2].map((beam) => player.kv.ssmBlockBaseIndex(2 as never, beam))).size).toBe(3);
    expect(pages()).toEqual(before.map((count) => count + 2));
  },
);

scenario('each beam reads exactly its own tokens, over many blocks', model([full(), windowed(6), recurrent()]), async (stage) => {
  const player = await stage.start();
  player.extend(seq(10));
  player.forkBeams(3);
  for (let round = 0; round < 4; round++) {
    expect(player.stepBeams([0, 1, 2].map((beam) => own(beam, 3 + round)))).toBe(true);
    player.verifyAll();
  }
});

scenario(
  'the beam that is kept becomes the request, and only its tokens are published',
  model([full(), windowed(6)]),
  async (stage) => {
    const player = await stage.start();
    player.extend(seq(10));
    player.forkBeams(3);
    player.stepBeams([0, 1, 2].map((beam) => own(beam, 9)));
    player.settle();
    player.keepBeam(1);
    player.commit();
    player.verifyAll();
    expect(stage.probe([...seq(10), ...own(1, 9)])).toBe(16);
    for (const lost of [0, 2]) expect(stage.probe([...seq(10), ...own(lost, 9)])).toBe(10);
    player.close();
    expect(stage.probe([...seq(10), ...own(1, 9)])).toBe(19);
  },
);

scenario(
  'beams that are reordered go on from their parents and take no page',
  model([full(), windowed(6), recurrent('optional')]),
  async (stage) => {
    const player = await stage.start();
    player.extend(seq(6));
    player.forkBeams(4);
    player.stepBeams([0, 1, 2, 3].map((beam) => own(beam, 7)));
    player.settle();
    const free = () => [0, 1, 2].map((group) => stage.slots(group).free);
    const before = free();
    expect(player.reorderBeams([2, 2, 0, 2])).toBe(true);
    // What only beams 1 and 3 had of the full blocks is given back; the rest is handed on.
    expect(free().map((count, group) => count - before[group])).toEqual([4, 2, 0]);
    expect(player.texts.map((text) => text[6])).toEqual([3000, 3000, 1000, 3000]);
    player.stepBeams([0, 1, 2, 3].map((beam) => own(beam + 10, 7)));
    player.verifyAll();
  },
);

scenario('each beam gives a row of a step table', model([full(), recurrent()]), async (stage) => {
  const player = await stage.start();
  player.extend(seq(6));
  player.forkBeams(2);
  const { kv } = player;
  const last = kv.beam(1);
  expect(last.basePageIndices(0 as never)).toBe(kv.basePageIndices(0 as never, 1));
  expect([last.ssmBlockBaseIndex(1 as never), last.scratch(0 as never)]).toEqual([kv.ssmBlockBaseIndex(1 as never, 1), null]);
  kv.keepBeam(1);
  expect(() => last.basePageIndices(0 as never)).toThrow(refusal('unknown-beam'));
  expect(() => kv.beam(1)).toThrow(refusal('unknown-beam'));
});

scenario('blocks that all beams have in common again are held once', model([full()]), async (stage) => {
  const player = await stage.start();
  player.extend(seq(4));
  player.forkBeams(2);
  player.stepBeams([own(0, 8), own(1, 8)]);
  player.settle();
  player.reorderBeams([1, 1]);
  const { pages } = stage.manager.inspect();
  expect(pages.map(({ holds }) => holds)).toEqual([1, 1, 1]);
});

scenario('a search that only changes places moves no bytes', model([full(), recurrent('private')]), async (stage) => {
  const player = await stage.start();
  player.extend(seq(6));
  player.forkBeams(3);
  player.stepBeams([0, 1, 2].map((beam) => own(beam, 1)));
  player.settle();
  const submissions = stage.device.submissions;
  player.reorderBeams([2, 0, 1]);
  player.reorderBeams([0, 1, 2]);
  expect(stage.device.submissions).toBe(submissions);
  player.reorderBeams([1, 1, 2]);
  expect(stage.device.submissions).toBe(submissions + 1);
});

scenario('growing takes a page for each beam, all or none', model([full(), windowed(12)], { slots: [8, 7] }), async (stage) => {
  const player = await stage.start();
  player.extend(seq(8));
  player.forkBeams(3);
  expect(player.stepBeams([own(0, 4), own(1, 4), own(2, 4)])).toBe(true);
  const before = [tables(player.kv, 0), tables(player.kv, 1), stage.slots(0), stage.slots(1), player.kv.capacity];
  expect(player.settle(13)).toBe(false);
  expect([tables(player.kv, 0), tables(player.kv, 1), stage.slots(0), stage.slots(1), player.kv.capacity]).toEqual(before);
  player.settle();
  player.reorderBeams([0, 2]);
  expect(player.stepBeams([own(0, 1), own(1, 1)])).toBe(true);
});

scenario('a fork for which there is no room changes nothing', model([full(), recurrent()], { slots: [8, 4] }), async (stage) => {
  const player = await stage.start();
  player.extend(seq(6));
  const before = stage.manager.inspect();
  expect(player.kv.forkBeams(5)).toBe(false);
  expect(() => {
    player.kv.beamWidth = 5;
  }).toThrow(refusal('no-room-to-fork'));
  expect(stage.manager.inspect()).toEqual(before);
  expect(player.forkBeams(3)).toBe(true);
});

scenario('published pages that nobody holds make room for beams', model([full()], { slots: 6 }), async (stage) => {
  await stage.donate([50, 51, 52, 53, 54, 55, 56, 57], [8]);
  const player = await stage.start();
  player.extend(seq(6));
  expect(stage.slots(0)).toMatchObject({ free: 2, evictable: 2 });
  expect(player.forkBeams(5)).toBe(true);
  expect(stage.probe([50, 51, 52, 53, 54, 55, 56, 57])).toBe(0);
});

scenario(
  'more beams may come from some of the present ones, and fewer stay',
  model([full(), windowed(5, 'private'), recurrent()]),
  async (stage) => {
    const player = await stage.start();
    player.extend(seq(6));
    player.kv.beamWidth = 1;
    player.forkBeams(2);
    player.stepBeams([own(0, 5), own(1, 5)]);
    player.settle();
    player.reorderBeams([1, 0, 1, 1, 0]);
    player.stepBeams([0, 1, 2, 3, 4].map((beam) => own(beam + 2, 5)));
    player.settle();
    player.forkBeams(7);
    player.stepBeams([0, 1, 2, 3, 4, 5, 6].map((beam) => own(beam + 7, 2)));
    player.settle();
    player.reorderBeams([6, 3]);
    player.stepBeams([own(20, 5), own(21, 5)]);
    player.verifyAll();
  },
);

scenario(
  'private pages and private state are never shared between beams',
  model([full(), windowed(9, 'private'), recurrent('private')]),
  async (stage) => {
    const player = await stage.start();
    player.extend(seq(10));
    player.forkBeams(3);
    const shown = tables(player.kv, 1).flatMap((table) => table.filter((slot) => slot >= 0));
    expect(shown.length).toBe(9);
    expect(new Set(shown).size).toBe(9);
    player.stepBeams([own(0, 6), own(1, 6), own(2, 6)]);
    player.settle();
    player.reorderBeams([1, 1, 1]);
    player.stepBeams([own(3, 6), own(4, 6), own(5, 6)]);
    player.verifyAll();
  },
);

scenario('windows let go of what all beams have left behind', model([windowed(4)]), async (stage) => {
  const player = await stage.start();
  player.extend(seq(8));
  player.forkBeams(2);
  for (let round = 0; round < 6; round++) {
    expect(player.stepBeams([own(round, 4), own(round + 10, 4)])).toBe(true);
    player.settle();
    player.reorderBeams([1, 0]);
  }
  player.kv.stopCommitting();
  player.stepBeams([own(0, 1), own(1, 1)]);
  // Two blocks are live in each beam: the one before, and the one that is written.
  expect(stage.manager.inspect().pages.filter(({ owners }) => owners.length > 0).length).toBe(4);
});

scenario(
  'uncommitted pages that have left the window wait in every beam for the one that is kept',
  model([full(), windowed(4)]),
  async (stage) => {
    const player = await stage.start();
    player.step(seq(6));
    player.settle();
    player.forkBeams(2);
    for (let round = 0; round < 4; round++) {
      player.stepBeams([own(2 * round, 4), own(2 * round + 1, 4)]);
      player.settle();
      player.reorderBeams(round === 2 ? [1, 1] : [0, 1]);
    }
    player.keepBeam(1);
    player.commit();
    expect(stage.pagesOf(1, player.text)).toEqual([0, 1, 2, 3, 4]);
  },
);

scenario('beams survive being suspended', model([full(), windowed(6, 'private'), recurrent()]), async (stage) => {
  const player = await stage.start();
  player.extend(seq(6));
  player.forkBeams(3);
  player.stepBeams([own(0, 5), own(1, 5), own(2, 5)]);
  player.settle();
  player.reorderBeams([2, 1, 2]);
  const before = tables(player.kv, 0);
  player.suspend();
  expect(
    tables(player.kv, 0)
      .flat()
      .every((slot) => slot === -1),
  ).toBe(true);
  expect(await player.resume()).toBe(true);
  expect(tables(player.kv, 0)).toEqual(before);
  player.stepBeams([own(3, 5), own(4, 5), own(5, 5)]);
  player.verifyAll();
});

scenario(
  'a request that ends with several beams publishes what it had committed before they parted',
  model([full(), recurrent()]),
  async (stage) => {
    const player = await stage.start();
    player.extend(seq(6), { snapshot: false });
    player.forkBeams(2);
    player.stepBeams([own(0, 5), own(1, 5)]);
    player.kv.stopCommitting();
    expect(stage.pagesOf(0, seq(6))).toEqual([0, 1]);
  },
);

scenario('what several beams cannot do is refused', model([full(), recurrent()]), async (stage) => {
  const player = await stage.start();
  player.extend(seq(6));
  const { kv } = player;
  player.forkBeams(2);
  const before = stage.manager.inspect();
  expect(() => kv.commit([1])).toThrow(refusal('several-beams'));
  expect(() => kv.commit([], { end: true })).toThrow(refusal('several-beams'));
  expect(() => kv.fork()).toThrow(refusal('several-beams'));
  expect(() => kv.keepBeam(2)).toThrow(refusal('unknown-beam'));
  expect(() => kv.reorderBeams([0, -1])).toThrow(refusal('unknown-beam'));
  expect(() => kv.reorderBeams([0, 0.5])).toThrow(refusal('unknown-beam'));
  expect(() => kv.reorderBeams([])).toThrow(refusal('invalid-beam-width'));
  for (const width of [0, -1, 1.5, Number.NaN, 1e9]) expect(() => kv.forkBeams(width)).toThrow(refusal('invalid-beam-width'));
  expect(() => kv.basePageIndices(0 as never, 2)).toThrow(refusal('unknown-beam'));
  expect(() => kv.ssmBlockBaseIndex(1 as never, -1)).toThrow(refusal('unknown-beam'));
  expect(stage.manager.inspect()).toEqual(before);
  kv.suspend();
  expect(() => kv.keepBeam(0)).toThrow(refusal('beams-suspended'));
  await kv.resume();
  kv.keepBeam(0);
  kv.commit([], { end: true });
  expect(() => kv.forkBeams(2)).toThrow(refusal('beams-ended'));
  kv.close();
  expect(() => kv.forkBeams(2)).toThrow(refusal('beams-closed'));
});

const scratched = model([windowed(4), full()], { swaScratchReuse: { maxRewindLen: 2 } });

scenario('a step with scratch cannot be forked, and several beams use none', scratched, async (stage) => {
  const player = await stage.start();
  player.step(seq(40));
  expect(player.kv.scratch(0 as never)).not.toBeNull();
  expect(() => player.kv.forkBeams(2)).toThrow(refusal('scratch-in-use'));
  player.commit();
  player.forkBeams(2);
  player.stepBeams([own(0, 40), own(1, 40)]);
  expect(player.kv.scratch(0 as never)).toBeNull();
  player.verifyAll();
  // With one beam these blocks would be scratch, and nobody could tell which of their pages were written.
  expect(() => player.kv.keepBeam(1)).toThrow(refusal('scratch-in-use'));
  player.settle();
  player.keepBeam(1);
  player.commit();
  player.step(seq(40));
  expect(player.kv.scratch(0 as never)).not.toBeNull();
  player.commit();
  player.verifyAll();
});

test('a beam width of a closed manager`s request reads what it was', async () => {
  const stage = new Stage(model([full()]));
  const player = await stage.start();
  player.extend(seq(5));
  player.forkBeams(2);
  await stage.manager.close({ force: true });
  expect(player.kv.status).toBe('closed');
  expect(() => player.kv.keepBeam(0)).toThrow(StateError);
});
