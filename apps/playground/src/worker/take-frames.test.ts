import { HostPageDevice, KvCacheManager } from '@bufferwise/cache-manager';
import { defineCacheConfig } from '@bufferwise/core-policy';
import { expect, test } from 'vitest';
import { NOTHING, SLOT_STATES } from '../protocol/memory-frame.ts';
import { takeMemoryFrame } from './take-memory-frame.ts';
import { takeTreeFrame } from './take-tree-frame.ts';

const seq = (length: number, from = 0) => Array.from({ length }, (_, i) => from + i);

/** A manager with a request of 10 tokens in blocks of 4, a shared group and a private one, and host memory. */
async function watched() {
  const config = defineCacheConfig({
    tokensPerBlock: 4,
    tiers: [
      { tier: 'device', quota: 4 << 20 },
      { tier: 'host', quota: 1 << 16 },
    ],
    layers: [
      {
        type: 'attention',
        layerId: 0,
        buffers: [
          { role: 'key', size: 1 << 14 },
          { role: 'value', size: 1 << 15, reusePolicy: 'private' },
        ],
      },
    ],
  });
  const manager = new KvCacheManager({ config, device: new HostPageDevice() });
  const request = manager.createKvCache({ id: 5, tokens: seq(10) });
  await request.resume();
  request.resize(10);
  request.commit(seq(10));
  const coldGroupIds = manager.layout.coldPoolGroups.map(({ lifecycleIds }) => lifecycleIds);
  return { manager, request, frame: () => takeMemoryFrame(manager.inspect(), { coldGroupIds, mostInUse: [3, 4] }, 3) };
}

test('a frame has an entry for each slot of each pool, and says whose page is in it', async () => {
  const { manager, request, frame: take } = await watched();
  const { frame, buffer } = take();
  expect(frame.sequence).toBe(3);
  expect(frame.pools.map(({ tier, medium, groupIds, mostInUse }) => [tier, medium, groupIds, mostInUse])).toEqual([
    [0, 'device', [0], 3],
    [0, 'device', [1], 4],
    [1, 'host', [0], null],
    [1, 'host', [1], null],
  ]);
  expect(frame.numSlots).toBe(frame.pools.reduce((sum, { numSlots }) => sum + numSlots, 0));
  for (const column of [
    frame.state,
    frame.page,
    frame.block,
    frame.group,
    frame.coverage,
    frame.holds,
    frame.priority,
    frame.owner,
    frame.owners,
  ]) {
    expect(column.length).toBe(frame.numSlots);
    expect(column.buffer).toBe(buffer);
  }
  const locked = [...frame.state].flatMap((state, at) => (SLOT_STATES[state] === 'locked' ? [at] : []));
  // Three blocks of each group.
  expect(locked.map((at) => frame.group[at])).toEqual([0, 0, 0, 1, 1, 1]);
  expect(locked.map((at) => frame.owner[at])).toEqual(new Array(6).fill(5));
  expect(locked.map((at) => frame.owners[at])).toEqual(new Array(6).fill(1 << 5));
  // Private pages are in no block.
  expect(locked.slice(3).map((at) => frame.block[at])).toEqual([NOTHING, NOTHING, NOTHING]);
  expect(frame.block[locked[0]]).not.toBe(NOTHING);
  request.close();
  const later = take().frame;
  expect([...later.state].filter((state) => SLOT_STATES[state] === 'locked')).toEqual([]);
  expect([...later.owner].every((owner) => owner === NOTHING)).toBe(true);
  await manager.close();
});

test('a tree frame has each block before its children, with its groups and its words', async () => {
  const { manager, request } = await watched();
  request.close();
  const other = manager.createKvCache({ tokens: [...seq(4), ...seq(4, 100)] });
  await other.resume();
  other.resize(8);
  other.commit(seq(4, 100));
  other.close();
  const frame = takeTreeFrame(manager.inspect(), (tokens) => tokens.join(' '));
  expect(frame.texts).toEqual(['0 1 2 3', '4 5 6 7', '8 9', '100 101 102 103']);
  expect([...frame.parent]).toEqual([-1, 0, 1, 0]);
  expect([...frame.ordinal]).toEqual([0, 1, 2, 1]);
  expect([...frame.numTokens]).toEqual([4, 4, 2, 4]);
  // Of the shared group alone.
  expect([...frame.groups]).toEqual([1, 1, 1, 1]);
  expect(frame.omitted).toBe(0);
  await manager.close();
});
