import { expect } from 'vitest';
import type { DropPlan } from '../../src/index.ts';
import type { Player } from '../support/player.ts';
import { scenario } from '../support/scenario.ts';
import { full, model, recurrent, seq, windowed } from '../support/stage.ts';

const refusal = (code: string) => expect.objectContaining({ name: 'StateError', code });

function planned(player: Player): DropPlan {
  player.kv.stopCommitting();
  const plan = player.kv.planCommittedBlockDrop();
  if (plan === null) throw new Error('nothing to drop');
  return plan;
}

scenario('a snapshot goes with the last of its plans', model([recurrent()], { tokensPerBlock: 32 }), async (stage) => {
  const player = await stage.start();
  player.extend(seq(32));
  player.extend(seq(64).slice(32));
  const first = planned(player);
  const second = planned(player);
  expect(stage.probe(seq(64))).toBe(64);
  expect(first.drop()).toBe(0);
  expect(stage.probe(seq(64))).toBe(64);
  expect(second.drop()).toBe(1);
  expect(stage.probe(seq(64))).toBe(32);
  expect(() => first.drop()).toThrow(refusal('already-dropped'));
  const empty = await stage.start();
  empty.kv.stopCommitting();
  expect(empty.kv.planCommittedBlockDrop()).toBeNull();
});

scenario(
  'every page of a window is planned once, and the snapshot',
  model([windowed(32), recurrent()], { tokensPerBlock: 16 }),
  async (stage) => {
    const player = await stage.start();
    player.extend(seq(48));
    const plan = planned(player);
    expect(plan.numPages).toBe(3);
    player.close();
    expect(stage.probe(seq(48))).toBe(48);
    expect(plan.drop()).toBe(3);
    expect(stage.probe(seq(48))).toBe(0);
  },
);

scenario('a shorter end goes without the longer one', model([full(), windowed(8)], { tokensPerBlock: 8 }), async (stage) => {
  const long = await stage.start();
  long.extend(seq(24));
  const short = await stage.start(seq(8));
  const [longPlan, shortPlan] = [planned(long), planned(short)];
  long.close();
  short.close();
  expect(stage.probe(seq(8))).toBe(8);
  shortPlan.drop();
  expect([stage.probe(seq(8)), stage.probe(seq(24))]).toEqual([0, 24]);
  longPlan.drop();
  expect(stage.probe(seq(24))).toBe(16);
});

scenario('full attention and sinks stay', model([full(), windowed(4, 'required', 4)]), async (stage) => {
  const player = await stage.start();
  player.extend(seq(16));
  const plan = planned(player);
  player.close();
  expect([plan.numPages, plan.drop()]).toEqual([1, 1]);
  expect([stage.pagesOf(0, seq(16)), stage.pagesOf(1, seq(16))]).toEqual([[0, 1, 2, 3], []]);
});

scenario(
  'a page that somebody holds stays, and a page that is gone is not missed',
  model([full(), windowed(4)]),
  async (stage) => {
    const player = await stage.start();
    player.extend(seq(8));
    const [kept, missed] = [planned(player), planned(player)];
    expect(kept.drop()).toBe(0);
    player.close();
    stage.drop(1, seq(8), 1);
    await stage.donate(seq(12), [12]);
    expect(missed.drop()).toBe(0);
    expect(stage.probe(seq(12))).toBe(12);
  },
);

scenario(
  'optional groups give what they have, private ones nothing',
  model([full(), windowed(4, 'optional'), recurrent('optional'), windowed(4, 'private')]),
  async (stage) => {
    const player = await stage.start();
    player.extend(seq(8));
    const plan = planned(player);
    player.close();
    expect([plan.numPages, plan.drop()]).toEqual([2, 2]);
    expect(stage.probe(seq(8))).toBe(8);
    const chooser = await stage.start(seq(8));
    expect(chooser.kv.reuseStatus.map(({ complete }) => complete)).toEqual([true, false, false, false]);
    // It recomputed neither window nor state, so the tree has nothing of them that ends here.
    expect(planned(chooser).numPages).toBe(0);
  },
);

scenario(
  'where a match does not end at the count any more there is nothing to plan',
  model([full(), recurrent()]),
  async (stage) => {
    const player = await stage.start();
    player.extend(seq(6));
    player.kv.stopCommitting();
    stage.dropSnapshot(1, seq(6));
    expect(player.kv.planCommittedBlockDrop()).toBeNull();
  },
);

scenario('a backoff does not hide what there is to drop', model([recurrent()], { reuseMatchBackoff: 1 }), async (stage) => {
  const player = await stage.start();
  player.extend(seq(6));
  expect(planned(player).numPages).toBe(1);
});

scenario(
  'a plan comes between stop and close, and is carried out when it is disposed of',
  model([recurrent()]),
  async (stage) => {
    const player = await stage.start();
    player.extend(seq(6));
    expect(() => player.kv.planCommittedBlockDrop()).toThrow(refusal('plan-committing'));
    const plan = planned(player);
    player.close();
    expect(() => player.kv.planCommittedBlockDrop()).toThrow(refusal('plan-closed'));
    plan[Symbol.dispose]();
    plan[Symbol.dispose]();
    expect(stage.probe(seq(6))).toBe(0);
  },
);
