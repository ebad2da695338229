import { expect, test } from 'vitest';
import { checkSnapshot } from '../../test/support/check-snapshot.ts';
import { full, model, recurrent, Stage, seq, windowed } from '../../test/support/stage.ts';

test('a snapshot shows where everything is', async () => {
  const stage = new Stage(model([full(), recurrent()], { slots: [8, 4] }));
  const player = await stage.start([], { id: 42, scope: { loraId: 7 } });
  player.extend(seq(6));
  const { groups, poolGroups, pages, tree, requests, tokensPerBlock } = stage.manager.inspect();
  expect([tokensPerBlock, groups.map(({ kind, policy }) => `${policy} ${kind}`)]).toEqual([
    4,
    ['required attention', 'required ssm'],
  ]);
  expect(poolGroups.map(({ slots }) => slots.map(({ state }) => state))).toEqual([
    ['locked', 'locked', 'droppable', 'free', 'free', 'free', 'free', 'free'],
    ['locked', 'droppable', 'free', 'free'],
  ]);
  const [first, tail] = tree[0].blocks;
  expect(tree.map(({ loraId, salt, children }) => ({ loraId, salt, children }))).toEqual([
    { loraId: '7', salt: null, children: [first.id] },
  ]);
  expect([first.tokens, first.children, tail.tokens, tail.parent, tail.ordinal]).toEqual([
    [0, 1, 2, 3],
    [tail.id],
    [4, 5],
    first.id,
    1,
  ]);
  const [request] = requests;
  expect(request).toMatchObject({
    id: 42,
    status: 'active',
    loraId: '7',
    numCommittedTokens: 6,
    historyLength: 6,
    capacity: 6,
    beamWidth: 1,
  });
  const [own, state] = [request.groups[0].beams[0].pages, request.groups[1].beams[0].state];
  expect(own[0]).toBe(first.pages[0]);
  expect(pages.filter(({ owners }) => owners.includes(request.key)).map(({ id }) => id)).toEqual([...own, state].sort());
  expect(poolGroups.map(({ queue }) => queue)).toEqual([[tail.pages[0]], [tail.pages[1]]]);
  checkSnapshot(stage.manager);
  player.suspend();
  expect(
    stage.manager
      .inspect()
      .poolGroups[0].slots.map(({ state: each }) => each)
      .slice(0, 3),
  ).toEqual(['held', 'held', 'droppable']);
  await stage.finish();
});

test('scratch has slots and no pages', async () => {
  const stage = new Stage(model([windowed(4)], { swaScratchReuse: { maxRewindLen: 0 } }));
  const player = await stage.start();
  player.step(seq(40));
  const { poolGroups, requests } = stage.manager.inspect();
  const { scratch } = requests[0].groups[0];
  expect(scratch).toEqual({ begin: 0, end: 9, slots: [...(player.kv.scratch(0 as never)?.slotIds ?? [])] });
  expect(poolGroups[0].slots.flatMap(({ state }, slot) => (state === 'scratch' ? [slot] : []))).toEqual(scratch?.slots);
  checkSnapshot(stage.manager);
  player.commit();
  await stage.finish();
});

test('digests are shown whole, in hexadecimal', async () => {
  const stage = new Stage(model([full()]));
  await stage.donate([5, new Uint8Array(32).fill(10)], [2]);
  expect(stage.manager.inspect().tree[0].blocks[0].tokens).toEqual([5, '0a'.repeat(32)]);
  await stage.finish();
});

test('what the limits leave out is counted', async () => {
  const stage = new Stage(model([full()], { slots: 16 }));
  await stage.donate(seq(40), [40]);
  const { omitted, pages, tree, poolGroups } = stage.manager.inspect({ maxBlocks: 3, maxPages: 4, tokens: false });
  expect(omitted).toEqual({ blocks: 7, pages: 6 });
  expect([pages.length, tree[0].blocks.length, poolGroups[0].slots.length, poolGroups[0].queue.length]).toEqual([4, 3, 4, 4]);
  expect(tree[0].blocks.map(({ tokens, numTokens }) => [tokens.length, numTokens])).toEqual(new Array(3).fill([0, 4]));
  expect(stage.manager.inspect({ maxBlocks: 0, maxPages: 0 })).toMatchObject({
    pages: [],
    tree: [{ blocks: [] }],
    omitted: { blocks: 10, pages: 10 },
  });
  for (const limit of [-1, 0.5, Number.NaN]) {
    expect(() => stage.manager.inspect({ maxBlocks: limit })).toThrow(expect.objectContaining({ code: 'invalid-limit' }));
    expect(() => stage.manager.inspect({ maxPages: limit })).toThrow(expect.objectContaining({ code: 'invalid-limit' }));
  }
  await stage.finish();
});

test('a path may be longer than a call stack', async () => {
  const stage = new Stage(model([full()], { slots: 2048, tokensPerBlock: 1 }));
  await stage.donate(seq(2000), [2000]);
  expect(JSON.parse(JSON.stringify(stage.manager.inspect())).tree[0].blocks.length).toBe(2000);
  await stage.finish();
});

test('a closed manager has nothing to show', async () => {
  const stage = new Stage(model([full()]));
  await stage.manager.close();
  expect(() => stage.manager.inspect()).toThrow(expect.objectContaining({ code: 'manager-closed' }));
});
