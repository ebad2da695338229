import { expect } from 'vitest';
import type { Player } from '../support/player.ts';
import { scenario } from '../support/scenario.ts';
import { full, model, recurrent, seq, windowed } from '../support/stage.ts';

const refusal = (code: string) => expect.objectContaining({ name: 'StateError', code });
const table = (player: Player, group: number) => [...player.kv.basePageIndices(group as never)];
const own = (request: number, count: number) => Array.from({ length: count }, (_, i) => 1000 * (request + 1) + i);

function forked(player: Player, id?: number): Player {
  const fork = player.fork({ id });
  if (fork === null) throw new Error('no room for the fork');
  return fork;
}

scenario(
  'a fork shares full blocks and has its own partial block, state and private pages',
  model([full(), windowed(6), recurrent(), windowed(9, 'private')]),
  async (stage) => {
    const player = await stage.start();
    player.extend(seq(10));
    const fork = forked(player, 7);
    const { kv } = fork;
    expect([kv.id, kv.status, kv.numCommittedTokens, kv.historyLength, kv.capacity]).toEqual([7, 'active', 10, 10, 10]);
    for (const group of [0, 1]) {
      expect(table(fork, group).slice(0, 2)).toEqual(table(player, group).slice(0, 2));
      expect(table(fork, group)[2]).not.toBe(table(player, group)[2]);
    }
    expect(kv.ssmBlockBaseIndex(2 as never)).not.toBe(player.kv.ssmBlockBaseIndex(2 as never));
    expect(table(fork, 3).some((slot) => slot >= 0 && table(player, 3).includes(slot))).toBe(false);
    expect(kv.reuseStatus).toEqual(player.kv.reuseStatus);
    expect(kv.matchDepths).toEqual(player.kv.matchDepths);
  },
);

scenario(
  'forks go on with different tokens, read exactly their own, and are found by them',
  model([full(), windowed(6), recurrent(), windowed(9, 'private'), recurrent('private')]),
  async (stage) => {
    const player = await stage.start();
    player.extend(seq(10));
    const forks = [player, forked(player), forked(player)];
    for (let round = 0; round < 3; round++) {
      for (const [index, fork] of forks.entries()) {
        expect(fork.extend(own(10 * round + index, 3 + round))).toBe(true);
        for (const each of forks) each.verifyAll();
      }
    }
    for (const { text } of forks) expect(stage.probe(text)).toBe(text.length);
    forks[0].close();
    for (const fork of forks.slice(1)) expect(fork.extend(own(99, 5))).toBe(true);
  },
);

scenario(
  'forks that commit the same tokens share the block of whoever came first',
  model([full(), windowed(100)]),
  async (stage) => {
    const player = await stage.start();
    player.extend(seq(6));
    const fork = forked(player);
    player.extend([6, 7, 8]);
    fork.extend([6, 7, 8]);
    for (const group of [0, 1]) expect(table(fork, group).slice(0, 2)).toEqual(table(player, group).slice(0, 2));
    fork.extend(own(1, 6));
    player.extend(own(2, 6));
    for (const each of [fork, player]) each.verifyAll();
  },
);

scenario('what was written before they parted is committed by both', model([full(), windowed(4)]), async (stage) => {
  const player = await stage.start();
  player.step(seq(14));
  player.settle();
  const fork = forked(player);
  fork.step(own(0, 4));
  fork.commit();
  expect(stage.probe(seq(14))).toBe(14);
  player.step(own(1, 4));
  player.commit();
  for (const each of [player, fork]) expect(stage.probe(each.text)).toBe(16);
  expect(stage.pagesOf(1, seq(12))).toEqual([0, 1, 2]);
});

scenario(
  'a fork that commits other tokens for what both had written publishes none of it',
  model([full(), windowed(4)]),
  async (stage) => {
    const player = await stage.start();
    player.step(seq(8));
    player.settle();
    const fork = forked(player);
    player.commit();
    fork.kv.commit(own(0, 8));
    expect([stage.probe(seq(8)), stage.probe(own(0, 8))]).toEqual([8, 0]);
  },
);

scenario(
  'a fork keeps its pages when the request it came from is gone, and when the tree loses them',
  model([full(), recurrent()]),
  async (stage) => {
    const player = await stage.start();
    player.extend(seq(8));
    const fork = forked(player);
    player.close();
    stage.drop(0, seq(8), 0);
    expect(stage.probe(seq(8))).toBe(0);
    expect(fork.extend([8, 9])).toBe(true);
    expect(stage.probe(seq(10))).toBe(10);
  },
);

scenario(
  'a fork has the room of the request it came from, and copies nothing of what is not written',
  model([full()]),
  async (stage) => {
    const player = await stage.start();
    player.extend(seq(8));
    player.kv.resize(17);
    const { submissions } = stage.device;
    const fork = forked(player);
    expect(fork.kv.capacity).toBe(17);
    expect(stage.device.submissions).toBe(submissions);
    expect(
      table(fork, 0)
        .slice(2)
        .some((slot) => table(player, 0).includes(slot)),
    ).toBe(false);
    fork.compute(own(0, 9));
    player.compute(own(1, 9));
    for (const each of [fork, player]) each.verifyAll();
  },
);

scenario('a fork for which there is no room changes nothing', model([full(), recurrent()], { slots: [8, 4] }), async (stage) => {
  const player = await stage.start();
  player.extend(seq(6), { snapshot: false });
  const forks = [forked(player), forked(player), forked(player)];
  const before = stage.manager.inspect();
  expect(player.fork()).toBeNull();
  expect(stage.manager.inspect()).toEqual(before);
  forks[0].close();
  expect(player.fork()).not.toBeNull();
});

scenario(
  'a choice of groups passes on to a fork',
  model([full(), windowed(4, 'optional'), recurrent('optional')]),
  async (stage) => {
    await stage.donate(seq(8), [8]);
    const chooser = await stage.start([...seq(8), 8], { select: [1, 2] });
    const other = await stage.start([...seq(8), 9]);
    for (const player of [chooser, other]) {
      const fork = forked(player);
      player.close();
      fork.extend(own(player === chooser ? 3 : 4, 8));
      expect(stage.pagesOf(1, fork.text).some((block) => block >= 2)).toBe(player === chooser);
      fork.close();
    }
  },
);

scenario('forks are suspended and resumed by themselves', model([full(), windowed(5), recurrent('private')]), async (stage) => {
  const player = await stage.start();
  player.extend(seq(7));
  const fork = forked(player);
  fork.suspend();
  player.extend(own(0, 6));
  expect(await fork.resume()).toBe(true);
  fork.extend(own(1, 6));
  player.suspend();
  fork.close();
  expect(await player.resume()).toBe(true);
});

scenario('after stopCommitting a fork may not commit either', model([full()]), async (stage) => {
  const player = await stage.start();
  player.extend(seq(5));
  player.kv.stopCommitting();
  const fork = forked(player);
  fork.step([5]);
  expect(() => fork.commit()).toThrow(refusal('commit-stopped'));
});

scenario(
  'a fork of what cannot be forked is refused',
  model([windowed(4), full()], { swaScratchReuse: { maxRewindLen: 0 } }),
  async (stage) => {
    const waiting = stage.open(seq(4));
    expect(() => waiting.fork()).toThrow(refusal('fork-suspended'));
    const player = await stage.start();
    player.step(seq(40));
    const before = stage.manager.inspect();
    expect(() => player.fork()).toThrow(refusal('scratch-in-use'));
    expect(stage.manager.inspect()).toEqual(before);
    player.commit(undefined, { end: true });
    expect(() => player.fork()).toThrow(refusal('fork-ended'));
    player.close();
    expect(() => player.fork()).toThrow(refusal('fork-closed'));
  },
);
