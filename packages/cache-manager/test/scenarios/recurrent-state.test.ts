import type { LayerGroupId } from '@bufferwise/core-policy';
import { describe, expect } from 'vitest';
import { stateOf } from '../../src/testing/manager-registry.ts';
import type { Player } from '../support/player.ts';
import { scenario } from '../support/scenario.ts';
import { full, model, recurrent, type Stage, seq, windowed } from '../support/stage.ts';

const F = 0 as LayerGroupId;
const S = 1 as LayerGroupId;

const hybrid = (enablePartialReuse = true) => model([full(), recurrent()], { tokensPerBlock: 32, enablePartialReuse });
const match = (stage: Stage, tokens: readonly number[]) => stage.open(tokens).kv.numCommittedTokens;
const missed = (stage: Stage, group: LayerGroupId) => stage.manager.statistics().groups[group].missedSnapshots;

describe('a match of a model with state', () => {
  scenario('is nothing in an empty tree', hybrid(), async (stage) => {
    expect(match(stage, seq(64))).toBe(0);
  });

  for (const partial of [false, true]) {
    scenario(
      `ends at the last snapshot before the tokens differ, ${partial ? 'with' : 'without'} partial reuse`,
      hybrid(partial),
      async (stage) => {
        await stage.donate(seq(64), [32, 64]);
        expect([32, 48, 64, 96].map((count) => match(stage, seq(count)))).toEqual([32, 32, 64, 64]);
        expect(stage.open(seq(48)).kv.matchDepths.withoutState).toBe(partial ? 48 : 32);
        expect((await stage.start(seq(96))).extend(seq(96).slice(64))).toBe(true);
      },
    );
  }

  for (const [partial, longer] of [
    [false, 32],
    [true, 48],
  ] as const) {
    scenario(
      `ends at a snapshot inside a block exactly, ${partial ? 'with' : 'without'} partial reuse`,
      hybrid(partial),
      async (stage) => {
        await stage.donate(seq(48), [32, 48]);
        expect([match(stage, seq(64)), match(stage, seq(48)), match(stage, seq(47))]).toEqual([longer, 48, 32]);
        expect((await stage.start(seq(48))).extend([7, 8, 9])).toBe(true);
      },
    );
  }

  // Prevents: attention good for more than the state, and the larger of both taken for all.
  scenario(
    'is what all groups can do together when a page of attention is lost in the middle',
    model([full(), recurrent()], { tokensPerBlock: 16 }),
    async (stage) => {
      await stage.donate(seq(64), [16, 32, 48, 64]);
      stage.drop(F, seq(64), 2);
      const reader = await stage.start(seq(70));
      expect([reader.kv.numCommittedTokens, reader.kv.matchDepths.path]).toEqual([32, 32]);
      stage.dropSnapshot(S, seq(32));
      const next = await stage.start(seq(70));
      expect(next.kv.numCommittedTokens).toBe(16);
      expect(next.extend(seq(70).slice(16))).toBe(true);
    },
  );

  // Prevents: "some tokens are cached" read as "the state is there".
  scenario('is nothing when the only snapshot is lost', model([full(), recurrent()]), async (stage) => {
    await stage.donate(seq(8), [8]);
    stage.dropSnapshot(S, seq(8));
    const reader = await stage.start(seq(12));
    expect(reader.kv.matchDepths).toEqual({ path: 8, withoutState: 8, usable: 0 });
    expect(reader.extend(seq(12))).toBe(true);
  });

  // Prevents: the margin that a draft head asks for cuts attention and state at different places.
  for (const [reuseMatchBackoff, expected] of [
    [1, 8],
    [0, 16],
  ]) {
    scenario(
      `with a backoff of ${reuseMatchBackoff} ends where attention and state agree`,
      model([full(), recurrent()], { reuseMatchBackoff }),
      async (stage) => {
        await stage.donate(seq(16), [8, 16]);
        const reader = await stage.start(seq(20));
        expect([reader.kv.numCommittedTokens, reader.kv.matchDepths.path]).toEqual([expected, 16]);
        expect(reader.extend(seq(20).slice(expected))).toBe(true);
      },
    );
  }

  scenario(
    'goes on from an optional snapshot only when that is selected; otherwise from zero',
    model([full(), recurrent('optional')]),
    async (stage) => {
      await stage.donate(seq(10), [10]);
      for (const select of [[], [S]]) {
        const reader = await stage.start(seq(10), { select });
        expect(reader.kv.reuseStatus[S]).toMatchObject({ complete: true, endpoint: 10, coverage: [[0, 10]] });
        expect(reader.extend([50 + select.length])).toBe(true);
      }
    },
  );

  scenario(
    'is not shortened by a lost optional snapshot, which cannot be selected any more',
    model([full(), recurrent('optional')]),
    async (stage) => {
      await stage.donate(seq(8), [8]);
      stage.dropSnapshot(S, seq(8));
      const reader = stage.open(seq(12));
      expect([reader.kv.numCommittedTokens, reader.kv.reuseStatus[S].complete, reader.kv.reuseStatus[S].coverage]).toEqual([
        8,
        false,
        [],
      ]);
      await expect(reader.resume({ optionalReuseGroups: [S] })).rejects.toThrow(
        expect.objectContaining({ name: 'ReuseSelectionError' }),
      );
      expect(reader.kv.status).toBe('suspended');
      expect(await reader.resume()).toBe(true);
      expect(reader.extend([8, 9, 10, 11])).toBe(true);
      reader.close();
      expect(stage.open(seq(12)).kv.reuseStatus[S].complete).toBe(false);
    },
  );
});

describe('snapshots', () => {
  scenario('of three turns of one prompt stand side by side', hybrid(), async (stage) => {
    const found: number[] = [];
    for (const count of [10, 20, 25]) {
      const turn = await stage.start(seq(count));
      found.push(turn.kv.numCommittedTokens);
      expect(turn.extend(seq(count).slice(turn.numComputed))).toBe(true);
      turn.close();
    }
    expect([...found, ...[25, 20, 10].map((count) => match(stage, seq(count)))]).toEqual([0, 10, 20, 25, 20, 10]);
  });

  scenario('of one request in one block serve forks at each of them, also once the block is full', hybrid(), async (stage) => {
    const request = await stage.start();
    expect(request.extend(seq(10)) && request.extend(seq(20).slice(10))).toBe(true);
    const forks = () => [15, 25, 32, 40].map((count) => match(stage, seq(count)));
    expect(forks()).toEqual([10, 20, 20, 20]);
    expect(request.extend(seq(32).slice(20))).toBe(true);
    expect(forks()).toEqual([10, 20, 32, 32]);
  });

  scenario('move with their tail into the longer block', hybrid(), async (stage) => {
    await stage.donate(seq(48), [48]);
    await stage.donate(seq(96), [96]);
    expect([match(stage, seq(48)), match(stage, seq(96))]).toEqual([48, 96]);
    expect((await stage.start(seq(48))).extend([1, 2, 3])).toBe(true);
  });

  scenario('of a request that ends are its own pages, not copies', hybrid(), async (stage) => {
    const request = await stage.start();
    expect(request.step(seq(48)) && request.settle()).toBe(true);
    const slots = () => stage.groups.map((_, group) => stage.slots(group).total - stage.slots(group).free);
    const before = slots();
    request.commit(48, { end: true });
    expect(slots()).toEqual(before);
    request.close();
    expect([slots(), match(stage, seq(48))]).toEqual([before, 48]);
  });

  scenario('are taken only when the state is at the committed count, unless the caller promises it', hybrid(), async (stage) => {
    const commit = async (first: number, options?: { snapshot: boolean }): Promise<Player> => {
      const request = await stage.start();
      expect(request.step([first, ...seq(48).slice(1)], 16) && request.settle()).toBe(true);
      request.rewind(48);
      request.commit(32, options);
      return request;
    };
    const ahead = await commit(100);
    expect([ahead.kv.numCommittedTokens, match(stage, [100, ...seq(64).slice(1)])]).toEqual([32, 0]);
    ahead.close();
    expect(stage.open([100, ...seq(64).slice(1)]).kv.matchDepths).toMatchObject({ withoutState: 32, usable: 0 });

    const promised = await stage.start();
    expect(promised.step([101, ...seq(32).slice(1)], 32)).toBe(true);
    expect(promised.kv.resize(null, 48)).toBe(true);
    promised.commit(32, { snapshot: true });
    expect(match(stage, [101, ...seq(64).slice(1)])).toBe(32);
  });

  scenario('are left out of a decode step that asks for it, and taken when the request closes there', hybrid(), async (stage) => {
    const request = await stage.start();
    for (let count = 1; count <= 40; count++) expect(request.extend([count], { snapshot: false })).toBe(true);
    const text = request.text as number[];
    expect([match(stage, text), stage.manager.statistics().groups[S].pages]).toEqual([0, 1]);
    request.close();
    expect(match(stage, text)).toBe(40);
  });

  scenario('are not taken at the end when a step may have run since the commit', hybrid(), async (stage) => {
    for (const [first, spare, kept] of [
      [200, 1, 0],
      [201, 0, 33],
    ]) {
      const request = await stage.start();
      const tokens = [first, ...seq(33).slice(1)];
      expect(request.extend(tokens, { snapshot: false })).toBe(true);
      if (spare > 0) expect(request.kv.resize(33 + spare)).toBe(true);
      request.close();
      expect(match(stage, tokens)).toBe(kept);
    }
  });

  // Prevents: drafts leave the state beyond the committed tokens, and a snapshot says otherwise.
  scenario('after rejected drafts are of the accepted tokens, or there are none', model([full(), recurrent()]), async (stage) => {
    for (const putBack of [true, false]) {
      const text = [putBack ? 300 : 301, ...seq(13).slice(1)];
      const request = await stage.start();
      expect(request.step([...text.slice(0, 12), text[12], 99, 98])).toBe(true);
      if (putBack) {
        request.rewind(13);
        expect(request.settle(13)).toBe(true);
      } else expect(request.settle(15)).toBe(true);
      request.commit(13);
      expect(match(stage, text)).toBe(putBack ? 13 : 0);
    }
  });

  // Prevents: the newest snapshot of one prefill pushes out the ancestor that every other request shares.
  scenario(
    'worth more than others stay when there is no room for all, and what was left out or evicted is counted',
    model([full(), recurrent()], { tokensPerBlock: 32, slots: [64, 4], maxUtilForResume: 1 }),
    async (stage) => {
      const request = await stage.start([], { priority: (ordinal) => (ordinal === 0 ? 100 : 35) });
      for (let count = 32; count <= 160; count += 32) expect(request.extend(seq(count).slice(request.numComputed))).toBe(true);
      request.close();
      expect(match(stage, seq(160))).toBe(160);
      const second = stage.open([...seq(40), 500]);
      expect([second.kv.numCommittedTokens, second.kv.matchDepths.withoutState]).toEqual([32, 40]);
      expect(stage.manager.statistics().groups[S].evictedPages).toBe(2);
    },
  );

  scenario(
    'that a request leaves when it closes are worth what its blocks are worth',
    model([recurrent()], { slots: 3, maxUtilForResume: 1 }),
    async (stage) => {
      const precious = await stage.start([], { priority: () => 90 });
      expect(precious.extend(seq(4), { snapshot: false })).toBe(true);
      precious.close();
      await stage.donate([9, 9, 9, 9], [4]);
      await stage.donate([8, 8, 8, 8], [4]);
      expect([seq(4), [9, 9, 9, 9], [8, 8, 8, 8]].map((tokens) => match(stage, tokens))).toEqual([4, 0, 4]);
    },
  );

  scenario(
    'worth less than all that is there are left out and counted',
    model([full(), recurrent()], { slots: [64, 2], maxUtilForResume: 1 }),
    async (stage) => {
      const request = await stage.start([], { priority: (ordinal) => 100 - ordinal });
      expect(request.extend(seq(4)) && request.extend([4, 5, 6, 7])).toBe(true);
      expect([match(stage, seq(8)), missed(stage, S)]).toEqual([4, 1]);
      const other = stage.open();
      expect(await other.resume()).toBe(false);
    },
  );

  scenario(
    'that find no slot are left out and counted, and the commit goes on',
    model([full(), recurrent()], { slots: [64, 1], maxUtilForResume: 1 }),
    async (stage) => {
      const request = await stage.start();
      expect(request.extend(seq(8))).toBe(true);
      expect([match(stage, seq(8)), missed(stage, S), stage.open(seq(8)).kv.matchDepths.withoutState]).toEqual([0, 1, 8]);
      request.close();
      expect(match(stage, seq(8))).toBe(8);
    },
  );
});

describe('state without attention', () => {
  const pure = model([recurrent()]);

  // Prevents: losing a snapshot prunes the blocks under a request that is alive.
  scenario('goes on when its snapshot is lost between two commits', pure, async (stage) => {
    const request = await stage.start();
    expect(request.extend(seq(8))).toBe(true);
    stage.dropSnapshot(0, seq(8));
    expect(stage.manager.statistics().blocks).toBe(0);
    expect(request.extend(seq(16).slice(8))).toBe(true);
    expect(match(stage, seq(16))).toBe(16);
  });

  scenario('keeps no blocks for tokens that no snapshot can reach', pure, async (stage) => {
    const request = await stage.start();
    for (let count = 1; count <= 400; count++) expect(request.extend([count], { snapshot: false })).toBe(true);
    expect(stage.manager.statistics().blocks).toBe(0);
    request.close();
    expect(match(stage, request.text as number[])).toBe(400);
  });

  scenario('still hands a tail over to the block that continues it, when that has no snapshot', pure, async (stage) => {
    await stage.donate(seq(6), [6]);
    const request = await stage.start(seq(6));
    expect(request.extend(seq(8).slice(6), { snapshot: false })).toBe(true);
    expect([match(stage, seq(6)), match(stage, seq(8)), stage.manager.statistics().blocks]).toEqual([6, 6, 2]);
  });

  scenario(
    'hands a tail over also to a block that was committed before the tail came',
    model([recurrent()], { enablePartialReuse: false }),
    async (stage) => {
      const request = await stage.start();
      expect(request.extend(seq(4), { snapshot: false })).toBe(true);
      await stage.donate(seq(2), [2]);
      expect([match(stage, seq(4)), match(stage, seq(2))]).toEqual([0, 2]);
      expect(request.extend(seq(8).slice(4), { snapshot: false })).toBe(true);
      expect([match(stage, seq(4)), match(stage, seq(2)), stage.manager.statistics().blocks]).toEqual([2, 0, 1]);
    },
  );

  scenario(
    'resumes although its snapshot has the lowest priority of all',
    model([recurrent()], { slots: 3, maxUtilForResume: 1 }),
    async (stage) => {
      await stage.donate(seq(8), [8], { priority: () => 0 });
      await stage.donate([9, 9, 9, 9], [4], { priority: () => 100 });
      const hog = await stage.start();
      const reader = stage.open(seq(8));
      expect(stage.slots(0)).toMatchObject({ free: 0, evictable: 1 });
      expect(await reader.resume()).toBe(true);
      expect([match(stage, seq(8)), match(stage, [9, 9, 9, 9])]).toEqual([8, 0]);
      hog.close();
    },
  );

  scenario(
    'of suspended requests that fill the pool makes a newcomer wait, unchanged',
    model([recurrent()], { slots: 2, maxUtilForResume: 1 }),
    async (stage) => {
      for (const first of [100, 200]) {
        const player = await stage.start();
        expect(player.step([first])).toBe(true);
        player.suspend();
      }
      const before = stage.slots(0);
      const newcomer = stage.open();
      expect([await newcomer.resume(), stage.slots(0)]).toEqual([false, before]);
    },
  );
});

describe('a request that was suspended', () => {
  for (const layers of [[recurrent()], [full(), recurrent()]]) {
    scenario(
      `commits on although a hundred others pushed its snapshot out, ${layers.length > 1 ? 'with' : 'without'} attention`,
      model(layers, { slots: layers.length > 1 ? [600, 5] : 5, maxUtilForResume: 1 }),
      async (stage) => {
        const request = await stage.start();
        expect(request.extend(seq(8))).toBe(true);
        request.suspend();
        for (let other = 0; other < 100; other++) await stage.donate([1000 + other, 1, 2, 3], [4]);
        expect(match(stage, seq(8))).toBe(0);
        expect(await request.resume()).toBe(true);
        expect(request.extend([8, 9, 10, 11])).toBe(true);
        expect(match(stage, seq(12))).toBe(12);
        if (layers.length > 1) expect(stage.open(seq(12)).kv.matchDepths.withoutState).toBe(12);
      },
    );
  }

  scenario('finds its state in the slot where it was', model([full(), recurrent()]), async (stage) => {
    const request = await stage.start();
    expect(request.extend(seq(100))).toBe(true);
    const slot = request.kv.ssmBlockBaseIndex(S);
    request.kv.stopCommitting();
    request.suspend();
    expect(await request.resume()).toBe(true);
    expect(request.kv.ssmBlockBaseIndex(S)).toBe(slot);
  });
});

// Prevents: the block size of one group used to find the state of another.
scenario(
  'state keeps its slot while attention pages of one token each come and go',
  {
    ...model([full(), recurrent()], { tokensPerBlock: 64 }),
    layers: [
      { type: 'attention', layerId: 0, buffers: [{ role: 'kv', size: 64, tokensPerBlockOverride: 1 }] },
      { type: 'ssm', layerId: 1, buffers: [{ role: 'ssm_state', size: 4096 }] },
    ],
  },
  async (stage) => {
    await stage.donate(seq(128), [128]);
    const reader = await stage.start(seq(130));
    expect(reader.kv.numCommittedTokens).toBe(128);
    const slot = reader.kv.ssmBlockBaseIndex(S);
    for (const count of [130, 200, 300]) {
      expect(reader.extend(seq(count).slice(reader.numComputed))).toBe(true);
      expect(reader.kv.ssmBlockBaseIndex(S)).toBe(slot);
    }
  },
);

// Prevents: eviction during a commit cuts the committing request`s own line off the tree.
scenario(
  'a prompt of a quarter of a million tokens keeps its whole path while its snapshots push each other out',
  model([full(), recurrent()], { tokensPerBlock: 32, slots: [16384, 4], maxUtilForResume: 1 }),
  async (stage) => {
    // Invariants are checked once a commit here: the stage checks after every call, which this long a path makes slow.
    const total = 262_144;
    const request = stage.manager.createKvCache();
    await request.resume();
    const tokens = Uint32Array.from({ length: total }, (_, i) => i % 50_021);
    for (let count = 8192; count <= total; count += 8192) {
      request.resize(count);
      request.commit(tokens.subarray(count - 8192, count));
      expect(stage.manager.statistics().blocks).toBe(count / 32);
    }
    request.close();
    expect(stage.probe(tokens as unknown as number[])).toBe(total);
  },
);

scenario(
  'a pool of nothing but state may be full beyond the limit for growing pools',
  model([full(), recurrent()], { slots: [64, 4], maxUtilForResume: 0.7 }),
  async (stage) => {
    for (let i = 0; i < 3; i++) expect(await stage.open().resume()).toBe(true);
    expect(await stage.open().resume()).toBe(true);
    expect(stage.slots(S).free).toBe(0);
  },
);

// Prevents: an empty node that later serves as a source.
scenario(
  'requests of no tokens, of one and of three leave no empty block, snapshot or root',
  model([full(), recurrent()]),
  async (stage) => {
    const endings: ((player: Player) => void)[] = [
      () => {},
      ({ kv }) => kv.stopCommitting(),
      ({ kv }) => kv.commit([], { end: true }),
    ];
    for (let round = 0; round < 300; round++) {
      const player = stage.open(seq([0, 1, 3][round % 3]));
      expect(await player.resume()).toBe(true);
      player.kv.commit([]);
      endings[Math.floor(round / 3) % 3](player);
      player.close();
    }
    expect([stage.manager.statistics().blocks, stateOf(stage.manager).tree.roots.size, stage.probe(seq(3))]).toEqual([0, 0, 0]);
  },
);

// Prevents: fresh state in memory that still holds NaN of somebody else.
scenario(
  'fresh state is zero, whatever its slot held before',
  model([full(), windowed(8), recurrent(), recurrent('private')], { slots: [32, 32, 3, 3], maxUtilForResume: 1 }),
  async (stage) => {
    for (let round = 0; round < 6; round++) {
      const request = await stage.start();
      expect(request.extend([round, ...seq(9)])).toBe(true);
      for (const pool of stage.device.pools) expect(pool.bytes.length).toBeGreaterThan(0);
      request.close();
      const reader = await stage.start([round, ...seq(9)]);
      expect(reader.kv.numCommittedTokens).toBe(10);
      reader.close();
    }
  },
);

scenario(
  'snapshots and tails are right however many pages there are: tables grow while copies are put together',
  model([full(), recurrent()], { slots: [512, 256] }),
  async (stage) => {
    const tokens = seq(400);
    const writer = await stage.start();
    for (let count = 5; count <= 400; count += 5) expect(writer.extend(tokens.slice(count - 5, count))).toBe(true);
    for (let count = 5; count <= 400; count += 5) {
      const reader = await stage.start([...tokens.slice(0, count), 9999]);
      expect(reader.kv.numCommittedTokens).toBe(count);
      reader.close();
    }
  },
);
