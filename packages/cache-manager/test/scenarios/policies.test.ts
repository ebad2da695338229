import type { LayerGroupId } from '@bufferwise/core-policy';
import { describe, expect } from 'vitest';
import { dropPage } from '../../src/testing/index.ts';
import type { Player } from '../support/player.ts';
import { scenario } from '../support/scenario.ts';
import { full, type LayerShape, model, recurrent, type Stage, seq, windowed } from '../support/stage.ts';

const GLOBAL = 0 as LayerGroupId;
const OTHER = 1 as LayerGroupId;
const THIRD = 2 as LayerGroupId;

const page = ({ kv }: Player, group: LayerGroupId, block: number) => kv.basePageIndices(group)[block];
const status = ({ kv }: Player, group: LayerGroupId) => {
  const { complete, endpoint, coverage } = kv.reuseStatus[group];
  return { complete, endpoint, coverage };
};
const INCOMPLETE = { complete: false, endpoint: 0, coverage: [] };
const refusedSelection = expect.objectContaining({ name: 'ReuseSelectionError' });

describe('private pages', () => {
  for (const [count, sharesTail] of [
    [23, false],
    [24, true],
  ] as const) {
    scenario(
      `stay unpublished after global reuse at ${count} tokens, and a reader that finds no room for its own may try again`,
      model([full(), windowed(8, 'private')], { slots: [64, 8], maxUtilForResume: 1 }),
      async (stage) => {
        const owner = await stage.start();
        expect(owner.extend(seq(count))).toBe(true);
        owner.kv.stopCommitting();
        const reader = stage.open(seq(count));
        expect(reader.kv.numCommittedTokens).toBe(count);
        expect(status(reader, OTHER)).toEqual(INCOMPLETE);

        const hog = await stage.start();
        expect(hog.kv.resize(24)).toBe(true);
        for (let attempt = 0; attempt < 3; attempt++) {
          expect(await reader.resume()).toBe(false);
          expect([reader.kv.status, reader.kv.numCommittedTokens]).toEqual(['suspended', count]);
        }
        hog.close();
        expect(await reader.resume()).toBe(true);
        expect(page(reader, OTHER, 5)).not.toBe(page(owner, OTHER, 5));
        expect(page(reader, GLOBAL, 0)).toBe(page(owner, GLOBAL, 0));
        expect(page(reader, GLOBAL, 5) === page(owner, GLOBAL, 5)).toBe(sharesTail);

        reader.suspend();
        expect(await reader.resume()).toBe(true);
        owner.close();
        reader.close();
        expect(stage.probe(seq(count))).toBe(count);
        const blocks = Math.ceil(count / 4);
        const privatePages = Array.from({ length: blocks }, (_, block) =>
          dropPage(stage.manager, { tokens: seq(count), block, groupId: OTHER }),
        );
        expect(privatePages).not.toContain(true);
        expect(stage.pagesOf(GLOBAL, seq(count)).length).toBe(blocks);
      },
    );
  }

  scenario(
    'are dropped when they leave the window and when the capacity falls, without waiting for a commit',
    model([full(), windowed(8, 'private')]),
    async (stage) => {
      const request = await stage.start();
      expect(request.step(seq(24))).toBe(true);
      const used = () => stage.slots(OTHER).total - stage.slots(OTHER).free;
      expect(used()).toBe(6);
      expect(request.settle()).toBe(true);
      expect(used()).toBe(2);
      expect(request.kv.resize(40)).toBe(true);
      expect(used()).toBe(6);
      expect(request.kv.resize(24)).toBe(true);
      expect(used()).toBe(2);
    },
  );

  scenario(
    'of recurrent state survive suspend and resume, and leave no snapshot',
    model([full(), recurrent('private')]),
    async (stage) => {
      const request = await stage.start();
      expect(request.extend(seq(10))).toBe(true);
      const slot = request.kv.ssmBlockBaseIndex(OTHER);
      request.suspend();
      expect(await request.resume()).toBe(true);
      expect(request.kv.ssmBlockBaseIndex(OTHER)).toBe(slot);
      request.close();
      expect(stage.slots(OTHER)).toMatchObject({ evictable: 0 });
      const reader = await stage.start(seq(12));
      expect(reader.kv.numCommittedTokens).toBe(10);
      expect(reader.extend([10, 11])).toBe(true);
    },
  );
});

describe('two requests that compute the same at once', () => {
  async function twins(stage: Stage) {
    const [first, second] = [await stage.start(), await stage.start()];
    for (const twin of [first, second]) expect(twin.step(seq(24))).toBe(true);
    const before = stage.groups.map((_, group) => [
      page(first, group as LayerGroupId, 5),
      page(second, group as LayerGroupId, 5),
    ]);
    for (const [own, other] of before) expect(own).not.toBe(other);
    first.commit();
    second.commit();
    return { first, second };
  }

  scenario('share the global pages of the first to commit', model([full()]), async (stage) => {
    const { first, second } = await twins(stage);
    expect([0, 5].map((block) => page(second, GLOBAL, block))).toEqual([0, 5].map((block) => page(first, GLOBAL, block)));
    expect(stage.slots(GLOBAL).total - stage.slots(GLOBAL).free).toBe(6);
  });

  scenario(
    'keep their private pages, and blocks that have left the window stay empty',
    model([full(), windowed(8, 'private')]),
    async (stage) => {
      const { first, second } = await twins(stage);
      expect(page(second, GLOBAL, 5)).toBe(page(first, GLOBAL, 5));
      expect(page(second, OTHER, 5)).not.toBe(page(first, OTHER, 5));
      for (const twin of [first, second]) expect([0, 1, 2, 3].map((block) => page(twin, OTHER, block))).toEqual([-1, -1, -1, -1]);
    },
  );

  scenario('share optional pages too', model([full(), windowed(8, 'optional')]), async (stage) => {
    const { first, second } = await twins(stage);
    expect([GLOBAL, OTHER].map((group) => page(second, group, 5))).toEqual([GLOBAL, OTHER].map((group) => page(first, group, 5)));
  });
});

describe('a long request that shrinks token by token', () => {
  for (const policy of ['required', 'optional', 'private'] as const) {
    scenario(
      `leaves no stale page or index behind, with a ${policy} window`,
      model([full(), windowed(8, policy)]),
      async (stage) => {
        const request = await stage.start();
        for (let capacity = 40; capacity >= 1; capacity--) {
          expect(request.kv.resize(capacity)).toBe(true);
          for (const group of [GLOBAL, OTHER]) {
            expect(request.kv.basePageIndices(group).length).toBe(Math.ceil(capacity / 4));
            expect(stage.slots(group).total - stage.slots(group).free).toBe(Math.ceil(capacity / 4));
          }
        }
        expect(request.kv.resize(40)).toBe(true);
      },
    );
  }
});

scenario(
  'a policy keeps its pages in pools of its own',
  model([windowed(8, 'optional'), windowed(8, 'private'), windowed(8)]),
  async (stage) => {
    const { layout } = stage.manager;
    expect(new Set([0, 1, 2].map((group) => layout.poolGroupOf(group as LayerGroupId))).size).toBe(3);
    expect(layout.poolGroups.map(({ policy }) => policy)).toEqual(['optional', 'private', 'required']);
  },
);

describe('an optional window', () => {
  const cases: [string, LayerShape, prefix: number, tail: number, covered: number[]][] = [
    ['of two tokens', windowed(2, 'optional'), 8, 1, [1]],
    ['of one block', windowed(4, 'optional'), 8, 0, [1]],
    ['of ten tokens', windowed(10, 'optional'), 20, 3, [2, 3, 4]],
    ['of six tokens with a sink', windowed(6, 'optional', 4), 20, 3, [0, 3, 4]],
  ];
  for (const [name, layer, prefix, tail, covered] of cases) {
    const ranges = (blocks: number[]) => {
      const merged: [number, number][] = [];
      for (const block of blocks) {
        const last = merged.at(-1);
        if (last !== undefined && last[1] === block * 4) last[1] += 4;
        else merged.push([block * 4, block * 4 + 4]);
      }
      return merged;
    };
    const config = model([full(), layer, windowed(3, 'optional')], { commitMinSnapshot: true });

    const publish = async (stage: Stage): Promise<Player> => {
      const source = await stage.start();
      expect(source.step(seq(prefix + tail))).toBe(true);
      expect(source.settle()).toBe(true);
      source.commit();
      source.kv.stopCommitting();
      return source;
    };

    scenario(`${name} keeps the pages of its last whole block for whoever selects it`, config, async (stage) => {
      const source = await publish(stage);
      const reader = stage.open(seq(prefix));
      expect(reader.kv.numCommittedTokens).toBe(prefix);
      expect(status(reader, OTHER)).toEqual({ complete: true, endpoint: prefix, coverage: ranges(covered) });
      source.close();
      expect(await reader.resume({ optionalReuseGroups: [OTHER] })).toBe(true);
    });

    scenario(`${name} that is declined is replaced by fresh pages, and stays there for others`, config, async (stage) => {
      await publish(stage);
      const declining = stage.open(seq(prefix));
      const selecting = stage.open(seq(prefix));
      expect(await declining.resume({ optionalReuseGroups: [] })).toBe(true);
      expect(await selecting.resume({ optionalReuseGroups: [OTHER, THIRD] })).toBe(true);
      for (const block of covered) expect(page(declining, OTHER, block)).not.toBe(page(selecting, OTHER, block));
      expect(status(stage.open(seq(prefix)), OTHER).complete).toBe(true);
    });

    for (const victim of covered) {
      scenario(
        `${name} that lost block ${victim} is incomplete for newcomers, and whole for who claimed it before`,
        config,
        async (stage) => {
          const source = await publish(stage);
          const early = stage.open(seq(prefix));
          stage.drop(OTHER, seq(prefix), victim);
          source.close();
          const late = stage.open(seq(prefix));
          expect(late.kv.numCommittedTokens).toBe(prefix);
          expect(status(late, OTHER)).toEqual(INCOMPLETE);
          expect(status(late, THIRD).complete).toBe(true);
          await expect(late.resume({ optionalReuseGroups: [OTHER, THIRD] })).rejects.toThrow(refusedSelection);
          expect(late.kv.status).toBe('suspended');
          expect(await late.resume({ optionalReuseGroups: [THIRD] })).toBe(true);

          expect(await early.resume({ optionalReuseGroups: [OTHER, THIRD] })).toBe(true);
          const claimed = covered.map((block) => page(early, OTHER, block));
          expect(claimed).not.toContain(-1);
          early.suspend();
          expect(await early.resume()).toBe(true);
          expect(covered.map((block) => page(early, OTHER, block))).toEqual(claimed);
          early.close();
          late.close();
          expect(stage.probe(seq(prefix))).toBe(prefix);
        },
      );
    }
  }

  scenario(
    'that lost a page costs its neighbours nothing',
    model([full(), windowed(4, 'optional'), windowed(2, 'optional')]),
    async (stage) => {
      await stage.donate(seq(8), [8]);
      stage.drop(OTHER, seq(8), 1);
      expect(status(stage.open(seq(8)), THIRD).complete).toBe(true);
      stage.drop(THIRD, seq(8), 1);
      expect(stage.probe(seq(8))).toBe(8);
    },
  );

  scenario(
    'that is declined frees its own slots for the same resume when nothing else is free',
    model([full(), windowed(4, 'optional')], { slots: [16, 3], maxUtilForResume: 1 }),
    async (stage) => {
      await stage.donate(seq(8), [8]);
      const reader = stage.open(seq(8));
      expect(status(reader, OTHER).complete).toBe(true);
      const hog = await stage.start();
      expect(hog.kv.resize(8)).toBe(true);
      expect(stage.slots(OTHER)).toMatchObject({ free: 0, evictable: 0 });
      expect(await reader.resume({ optionalReuseGroups: [] })).toBe(true);
      expect(reader.kv.numCommittedTokens).toBe(8);
    },
  );

  scenario(
    'that is declined frees nothing while another request claims it too',
    model([full(), windowed(4, 'optional')], { slots: [16, 3], maxUtilForResume: 1 }),
    async (stage) => {
      await stage.donate(seq(8), [8]);
      const [reader, other] = [stage.open(seq(8)), stage.open(seq(8))];
      const hog = await stage.start();
      expect(hog.kv.resize(8)).toBe(true);
      expect(await reader.resume({ optionalReuseGroups: [] })).toBe(false);
      other.close();
      expect(await reader.resume({ optionalReuseGroups: [] })).toBe(true);
    },
  );

  scenario(
    'hides and gives back each page as soon as history says so, also within a block',
    model([full(), windowed(2, 'optional')], { commitMinSnapshot: true }),
    async (stage) => {
      const request = await stage.start();
      const seen = (history: number) => {
        expect(request.kv.resize(12, history)).toBe(true);
        const shown = [...request.kv.basePageIndices(OTHER)].flatMap((index, block) => (index < 0 ? [] : [block]));
        return { shown, kept: stage.slots(OTHER).total - stage.slots(OTHER).free };
      };
      expect(seen(4)).toEqual({ shown: [0, 1, 2], kept: 3 });
      expect(seen(5)).toEqual({ shown: [1, 2], kept: 3 });
      expect(seen(8)).toEqual({ shown: [1, 2], kept: 2 });
      expect(seen(9)).toEqual({ shown: [2], kept: 2 });
      expect(seen(12)).toEqual({ shown: [2], kept: 1 });
    },
  );

  scenario(
    'gets its page back from a twin that still has one, in the slot where it is',
    model([full(), windowed(4, 'optional')]),
    async (stage) => {
      const [first, second] = [await stage.start(), await stage.start()];
      for (const twin of [first, second]) expect(twin.step(seq(8))).toBe(true);
      first.commit();
      stage.drop(OTHER, seq(8), 1);
      const slot = page(second, OTHER, 1);
      second.commit();
      expect(page(second, OTHER, 1)).toBe(slot);
      expect(status(stage.open(seq(8)), OTHER).complete).toBe(true);
    },
  );

  scenario(
    'is never complete inside a block',
    model([full(), windowed(256, 'optional')], { tokensPerBlock: 128 }),
    async (stage) => {
      await stage.donate(seq(384), [384]);
      for (const count of [129, 255]) {
        const reader = stage.open(seq(count));
        expect(reader.kv.numCommittedTokens).toBe(count);
        expect(status(reader, OTHER)).toEqual(INCOMPLETE);
      }
      expect(status(stage.open(seq(256)), OTHER).complete).toBe(true);
    },
  );

  scenario('that is incomplete never shortens the match', model([full(), windowed(8, 'optional')]), async (stage) => {
    await stage.donate(seq(16), [16]);
    stage.drop(OTHER, seq(16), 3);
    const reader = stage.open(seq(24));
    expect([reader.kv.numCommittedTokens, status(reader, OTHER)]).toEqual([16, INCOMPLETE]);
    expect(status(stage.open(seq(12)), OTHER)).toEqual({ complete: true, endpoint: 12, coverage: [[4, 12]] });
  });
});

describe('a choice at the first resume', () => {
  const config = model([full(), windowed(4, 'optional'), windowed(2, 'optional'), recurrent('private')]);

  scenario('is made from a status that names every group', config, async (stage) => {
    await stage.donate(seq(8), [8]);
    const reader = stage.open(seq(8));
    expect(
      reader.kv.reuseStatus.map(({ groupId, policy, complete, endpoint, coverage }) => [
        groupId,
        policy,
        complete,
        endpoint,
        coverage,
      ]),
    ).toEqual([
      [0, 'required', true, 8, [[0, 8]]],
      [1, 'optional', true, 8, [[4, 8]]],
      [2, 'optional', true, 8, [[4, 8]]],
      [3, 'private', false, 0, []],
    ]);
  });

  for (const [what, groups] of [
    ['a required group', [0]],
    ['a private group', [3]],
    ['a group before the first', [-1]],
    ['a group behind the last', [4]],
    ['a good one beside a bad one', [1, 0]],
  ] as const) {
    scenario(`that names ${what} is refused and changes nothing`, config, async (stage) => {
      await stage.donate(seq(8), [8]);
      const reader = stage.open(seq(8));
      const before = stage.manager.storageStatistics(0);
      await expect(reader.resume({ optionalReuseGroups: groups as unknown as LayerGroupId[] })).rejects.toThrow(refusedSelection);
      await expect(reader.resume({ rebuiltGroups: groups as unknown as LayerGroupId[] })).rejects.toThrow(refusedSelection);
      expect([reader.kv.status, stage.manager.storageStatistics(0)]).toEqual(['suspended', before]);
      expect(await reader.resume({ optionalReuseGroups: [OTHER] })).toBe(true);
    });
  }

  scenario('may name a group twice, but not in both lists', config, async (stage) => {
    await stage.donate(seq(8), [8]);
    const reader = stage.open(seq(8));
    await expect(reader.resume({ optionalReuseGroups: [OTHER], rebuiltGroups: [OTHER] })).rejects.toThrow(refusedSelection);
    expect(await reader.resume({ optionalReuseGroups: [OTHER, OTHER], rebuiltGroups: [THIRD, THIRD] })).toBe(true);
  });

  scenario('takes the selected pages as they are and fresh ones for the rest, also after suspending', config, async (stage) => {
    const source = await stage.start();
    expect(source.extend(seq(8))).toBe(true);
    const reader = stage.open(seq(8));
    expect(await reader.resume({ optionalReuseGroups: [OTHER] })).toBe(true);
    const pages = () => [page(reader, OTHER, 1) === page(source, OTHER, 1), page(reader, THIRD, 1) === page(source, THIRD, 1)];
    expect(pages()).toEqual([true, false]);
    reader.suspend();
    await expect(reader.kv.resume({ optionalReuseGroups: [] })).rejects.toThrow(refusedSelection);
    await expect(reader.kv.resume({ rebuiltGroups: [] })).rejects.toThrow(refusedSelection);
    expect(await reader.resume()).toBe(true);
    expect(pages()).toEqual([true, false]);
  });

  scenario(
    'that found no room is no choice: the retry may choose anew, with every claim still held',
    model([full(), windowed(4, 'optional'), windowed(8, 'private')], { slots: [16, 5, 5], maxUtilForResume: 1 }),
    async (stage) => {
      await stage.donate(seq(8), [8]);
      const reader = stage.open(seq(8));
      const hog = await stage.start();
      expect(hog.kv.resize(16)).toBe(true);
      const before = stage.manager.storageStatistics(0);
      expect(await reader.resume({ optionalReuseGroups: [] })).toBe(false);
      expect(await reader.resume({ rebuiltGroups: [OTHER] })).toBe(false);
      expect(stage.manager.storageStatistics(0)).toEqual(before);
      hog.close();
      expect(await reader.resume({ optionalReuseGroups: [OTHER] })).toBe(true);
    },
  );
});

describe('forgotten work', () => {
  const config = model([full(), windowed(8, 'optional'), recurrent('optional')]);

  scenario('of a group that was neither selected nor rebuilt never reaches others', config, async (stage) => {
    await stage.donate(seq(8), [8]);
    stage.drop(OTHER, seq(8), 1);
    stage.dropSnapshot(THIRD, seq(8));
    const forgetful = await stage.start(seq(8));
    expect(forgetful.extend([8, 9, 10, 11])).toBe(true);
    forgetful.close();
    const reader = stage.open(seq(12));
    expect([reader.kv.numCommittedTokens, status(reader, OTHER), status(reader, THIRD)]).toEqual([12, INCOMPLETE, INCOMPLETE]);
  });

  scenario(
    'is not forgotten when the groups were rebuilt: then their matched history is published too',
    config,
    async (stage) => {
      await stage.donate(seq(8), [8]);
      stage.drop(OTHER, seq(8), 1);
      stage.dropSnapshot(THIRD, seq(8));
      const diligent = await stage.start(seq(8), { rebuild: [OTHER, THIRD] });
      expect(diligent.extend([8, 9, 10, 11])).toBe(true);
      diligent.close();
      const reader = await stage.start(seq(12), { select: [OTHER, THIRD] });
      expect(status(reader, OTHER)).toEqual({ complete: true, endpoint: 12, coverage: [[4, 12]] });
      const shorter = stage.open(seq(8));
      expect(status(shorter, OTHER).complete).toBe(true);
    },
  );
});
