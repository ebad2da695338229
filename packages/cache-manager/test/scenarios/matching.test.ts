import type { LayerGroupId } from '@bufferwise/core-policy';
import { describe, expect } from 'vitest';
import type { ReuseScope } from '../../src/index.ts';
import { scenario } from '../support/scenario.ts';
import { full, model, recurrent, seq, windowed } from '../support/stage.ts';
import type { Token } from '../support/stamp.ts';

const F = 0 as LayerGroupId;
const W = 1 as LayerGroupId;
/** A conversation that comes back to earlier ends: 32 tokens a block, attention to everything and to the last few tokens. */
const turns = (window = 16) => model([full(), windowed(window)], { tokensPerBlock: 32, commitMinSnapshot: true });

describe('a scope', () => {
  // Prevents: the name of an adapter taken for a salt, or two values swapped.
  scenario('is a border: nothing is matched across, and everything within', model([full(), recurrent()]), async (stage) => {
    const scopes: (ReuseScope | undefined)[] = [
      { loraId: 7, salt: 11 },
      { loraId: 7, salt: 12 },
      { loraId: 8, salt: 11 },
      { loraId: 11, salt: 7 },
      { loraId: 7 },
      { salt: 7 },
      { loraId: 11 },
      undefined,
    ];
    for (let owner = 0; owner < scopes.length; owner++) {
      await stage.donate(seq(8), [8], { scope: scopes[owner] });
      expect(scopes.map((scope) => stage.probe(seq(8), scope))).toEqual(scopes.map((_, i) => (i <= owner ? 8 : 0)));
    }
    for (const scope of scopes) expect((await stage.start(seq(9), { scope })).kv.numCommittedTokens).toBe(8);
  });

  scenario('is told by its values: 7 and 7n are one, `{}` and none are one', model([full()]), async (stage) => {
    await stage.donate(seq(4), [4], { scope: { loraId: 7 } });
    await stage.donate([9, 9, 9, 9], [4]);
    expect([stage.probe(seq(4), { loraId: 7n }), stage.probe([9, 9, 9, 9], {})]).toEqual([4, 4]);
  });

  // Prevents: weights that were exchanged under a name answer from the old cache.
  scenario('is empty after everything reusable was cleared', model([full()]), async (stage) => {
    await stage.donate(seq(16), [16], { scope: { loraId: 7 } });
    stage.manager.clearReusableBlocks();
    expect([stage.probe(seq(16), { loraId: 7 }), stage.slots(F).free]).toEqual([0, stage.slots(F).total]);
  });
});

describe('tokens decide', () => {
  scenario('in whatever array they come', model([full()]), async (stage) => {
    await stage.donate(seq(12), [12]);
    const reader = stage.manager.createKvCache({ tokens: Uint32Array.from(seq(12)) });
    expect([reader.numCommittedTokens, stage.manager.probeReuse(Int32Array.from(seq(10)))]).toEqual([12, 10]);
    reader.close();
  });

  // Prevents: two images with one placeholder id answer for each other.
  scenario('whole digests included, also where they begin alike or look like an id', model([full()]), async (stage) => {
    const digest = (last: number): Token => Uint8Array.from({ length: 32 }, (_, i) => (i < 31 ? 5 : last));
    const prompt = (image: Token): Token[] => [1, 2, image, 100, 101, 102, 103, 3];
    await stage.donate(prompt(digest(1)), [8]);
    expect([digest(1), digest(2), 0x05050505].map((image) => stage.probe(prompt(image)))).toEqual([8, 2, 2]);
    await stage.donate(prompt(digest(2)), [8]);
    await stage.donate(prompt(0x05050505), [8]);
    for (const image of [digest(1), digest(2), 0x05050505])
      expect((await stage.start(prompt(image))).kv.numCommittedTokens).toBe(8);
  });

  scenario('however many siblings there are: one token in common is one token', model([full()]), async (stage) => {
    for (let i = 0; i < 40; i++) {
      await stage.donate([i, 1, 1, 1], [4]);
      expect(stage.probe([i, 2])).toBe(1);
      expect(stage.probe([0, 2])).toBe(1);
    }
  });

  for (const [partial, match] of [
    [false, 8],
    [true, 10],
  ] as const) {
    scenario(
      `to the last one they share, ${partial ? 'also' : 'but not'} inside a block`,
      model([full()], { enablePartialReuse: partial }),
      async (stage) => {
        await stage.donate(seq(12), [12]);
        expect(stage.probe(seq(10))).toBe(match);
      },
    );
  }

  for (const [backoff, usable] of [
    [0, 10],
    [2, 8],
    [3, 7],
    [10, 0],
  ]) {
    scenario(
      `less ${backoff} of them where the engine asked for a backoff`,
      model([full()], { reuseMatchBackoff: backoff }),
      async (stage) => {
        await stage.donate(seq(12), [12]);
        const reader = stage.open(seq(10));
        expect(reader.kv.matchDepths).toEqual({ path: 10, withoutState: usable, usable });
      },
    );
  }
});

describe('a turn that continues an earlier one', () => {
  scenario('leaves the end of the earlier one where it was', turns(), async (stage) => {
    await stage.donate(seq(80), [80]);
    await stage.donate(seq(160), [160]);
    expect([stage.probe(seq(81)), stage.probe(seq(160))]).toEqual([80, 160]);
    const reader = await stage.start(seq(80));
    expect(reader.extend(seq(120).slice(80).reverse())).toBe(true);
  });

  scenario('gives back the end of the earlier one, though that came later', turns(), async (stage) => {
    await stage.donate(seq(160), [160]);
    const second = await stage.start(seq(80));
    expect(second.kv.numCommittedTokens).toBe(0);
    expect(second.extend(seq(80))).toBe(true);
    second.close();
    expect([stage.probe(seq(81)), stage.probe(seq(160))]).toEqual([80, 160]);
  });

  scenario('is matched although the window`s page covers only half of a block that no token reads', turns(1), async (stage) => {
    await stage.donate(seq(80), [80]);
    await stage.donate(seq(96), [96]);
    expect(stage.probe(seq(96))).toBe(96);
  });

  scenario('widens what the tail is good for, and a shorter one does not narrow it', turns(), async (stage) => {
    await stage.donate(seq(80), [80]);
    await stage.donate(seq(88), [88]);
    const third = await stage.start(seq(80));
    expect(third.kv.numCommittedTokens).toBe(80);
    third.close();
    await stage.donate(seq(80), [80]);
    expect([stage.probe(seq(80)), stage.probe(seq(88)), stage.probe(seq(84))]).toEqual([80, 88, 84]);
  });

  // Prevents: a replaced page that still names a block which is gone.
  for (const resumed of [true, false]) {
    scenario(
      `takes a tail over from a request that ${resumed ? 'ended in it' : 'only claims it'}, which then closes safely`,
      turns(),
      async (stage) => {
        const first = await stage.start();
        expect(first.extend(seq(72), { end: true })).toBe(true);
        const holder = resumed ? first : stage.open(seq(72));
        if (!resumed) first.close();
        await stage.donate(seq(80), [80], { end: true });
        await stage.donate(seq(96), [96], { end: true });
        expect([stage.probe(seq(72)), stage.probe(seq(80)), stage.probe(seq(96))]).toEqual([72, 80, 96]);
        if (!resumed) expect(await holder.resume()).toBe(true);
        holder.close();
        expect(stage.probe(seq(96))).toBe(96);
      },
    );
  }

  scenario('replaces a partial tail, and both requests close cleanly', model([full(), windowed(8)]), async (stage) => {
    const [first, second] = [await stage.start(seq(6)), await stage.start(seq(8))];
    expect(first.extend(seq(6)) && second.step(seq(8))).toBe(true);
    first.close();
    expect(stage.probe(seq(8))).toBe(6);
    second.commit();
    expect(stage.probe(seq(8))).toBe(8);
    second.close();
    expect(stage.manager.statistics().blocks).toBe(2);
  });

  // Prevents: a follow-up prompt that drops a few tokens of the last reply finds nothing at all.
  scenario(
    'but drops the last tokens of the reply falls back to the end of the prompt',
    model([full(), recurrent()], { tokensPerBlock: 16 }),
    async (stage) => {
      await stage.donate(seq(80), [50, 80]);
      const next = await stage.start([...seq(78), 500, 501]);
      expect(next.kv.matchDepths).toEqual({ path: 78, withoutState: 78, usable: 50 });
      expect(next.extend([...seq(78), 500, 501].slice(50))).toBe(true);
    },
  );
});

describe('many users of one prefix', () => {
  scenario('leave nothing that cannot be evicted', model([full(), windowed(64)], { tokensPerBlock: 32 }), async (stage) => {
    for (const users of [1, 2, 4]) {
      const players = await Promise.all(Array.from({ length: users }, () => stage.start(seq(704))));
      for (const player of players) expect(player.extend(seq(704).slice(player.numComputed))).toBe(true);
      for (const player of players) player.close();
      for (const group of [F, W]) expect(stage.slots(group).free + stage.slots(group).evictable).toBe(stage.slots(group).total);
    }
    expect(stage.open(seq(345)).kv.numCommittedTokens).toBe(345);
  });

  // Prevents: requests that are equal see each other`s positions.
  scenario('all see the same, and what differs stays apart', model([full(), windowed(8), recurrent()]), async (stage) => {
    const same = await Promise.all(Array.from({ length: 8 }, () => stage.start(seq(20))));
    for (const player of same) expect(player.step(seq(20))).toBe(true);
    for (const player of same) player.commit();
    for (const player of same) expect(player.extend([same.indexOf(player)])).toBe(true);
    for (const player of same) player.verify();
    expect(stage.slots(F).total - stage.slots(F).free).toBe(5 + 8 + 8);
    expect(stage.manager.statistics().blocks).toBe(5 + 8);
  });
});

for (const count of [1, 3, 2]) {
  scenario(
    `neither clearing nor closing is possible with ${count} open, and both say so with the count`,
    model([full()]),
    async (stage) => {
      await stage.donate(seq(8), [8]);
      const open = Array.from({ length: count }, () => stage.open());
      const refusal = expect.objectContaining({
        name: 'StateError',
        code: 'requests-open',
        message: expect.stringContaining(`${count} request`),
      });
      expect(() => stage.manager.clearReusableBlocks()).toThrow(refusal);
      await expect(stage.manager.close()).rejects.toThrow(refusal);
      expect(stage.probe(seq(8))).toBe(8);
      for (const player of open) player.close();
      stage.manager.clearReusableBlocks();
      expect(stage.probe(seq(8))).toBe(0);
    },
  );
}
