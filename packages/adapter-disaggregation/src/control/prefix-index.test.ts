import { HostPageDevice, KvCacheManager } from '@bufferwise/cache-manager';
import { blockKeys } from '@bufferwise/cache-manager/outside';
import { defineCacheConfig, fullAttention, slidingWindow, ssmState } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import { transferLayout } from '../transfer/transfer-layout.ts';
import { BlockAnnouncer, hashOfKey } from './block-announcer.ts';
import { type ControlMessage, checkMessage, MOST_HASHES } from './control-message.ts';
import { PrefixIndex } from './prefix-index.ts';

const buffers = [{ role: 'key', size: 4096 }];
const CONFIG = defineCacheConfig({
  tokensPerBlock: 4,
  layers: [
    { type: 'attention', layerId: 0, buffers },
    { type: 'attention', layerId: 1, buffers, slidingWindowSize: 6, numSinkTokens: 4 },
    { type: 'attention', layerId: 2, buffers, slidingWindowSize: 6, reusePolicy: 'optional' },
    { type: 'ssm', layerId: 3, buffers: [{ role: 'ssm_state', size: 8192 }] },
  ],
  tiers: [
    { tier: 'device', quota: 1 << 20 },
    { tier: 'host', quota: 1 << 19 },
  ],
  enablePartialReuse: false,
});
const LAYOUT = transferLayout(CONFIG);

const hashesOf = (tokens: readonly number[]) =>
  blockKeys(tokens, undefined, 4)
    .slice(0, Math.floor(tokens.length / 4))
    .map(hashOfKey);

function numbers(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
}

/** Lets an index hear what an announcer has to say, in the form that travels; how much of it is gone. */
function hearAll(index: PrefixIndex, announcer: BlockAnnouncer): number {
  let gone = 0;
  for (let message = announcer.take(); message !== undefined; message = announcer.take()) {
    for (const [sign, , hashes] of message.changes) if (sign === '-') gone += hashes.length;
    index.take('w', 's', checkMessage(JSON.parse(JSON.stringify(message))) as ControlMessage & { kind: 'blocks' });
  }
  return gone;
}

test('what an index says of a worker is what its cache manager would find, through evictions, tiers and a late start', async () => {
  const announcer = new BlockAnnouncer(LAYOUT);
  const manager = new KvCacheManager({ config: CONFIG, device: new HostPageDevice(), events: announcer });
  const index = new PrefixIndex({ layout: LAYOUT, mostBlocks: 1 << 20 });
  index.open('w', 's');
  const next = numbers(3);
  const promptOf = () => Array.from({ length: 4 * (1 + next(9)) }, (_, i) => (i < 8 ? next(2) : next(3)) * 100 + i);
  let found = 0;
  let gone = 0;
  for (let round = 0; round < 300; round++) {
    const tokens = promptOf();
    const kv = manager.createKvCache({ tokens });
    if (await kv.resume()) {
      for (let at = kv.numCommittedTokens; at < tokens.length; at += 4) {
        if (!kv.resize(at + 4, at)) break;
        kv.resize(at + 4, at + 4);
        kv.commit(tokens.slice(at, at + 4));
      }
    }
    kv.close();
    await manager.settled();
    gone += hearAll(index, announcer);
    for (let probe = 0; probe < 5; probe++) {
      const other = promptOf();
      const { endpoint } = index.reuse('w', hashesOf(other), other.length);
      expect(endpoint, `round ${round}`).toBe(manager.probeReuse(other));
      if (endpoint > 0) found++;
    }
  }
  expect(found).toBeGreaterThan(100);
  expect(gone).toBeGreaterThan(100);

  const late = new PrefixIndex({ layout: LAYOUT, mostBlocks: 1 << 20 });
  late.open('w', 's');
  expect(late.isBehind('w', 's', announcer.nextBlocks)).toBe(true);
  announcer.beginAnew();
  hearAll(late, announcer);
  expect(late.isBehind('w', 's', announcer.nextBlocks)).toBe(false);
  for (const group of LAYOUT.groups.keys()) expect(late.blocksOf('w', group).sort()).toEqual(index.blocksOf('w', group).sort());
  await manager.close();
  hearAll(late, announcer);
  expect(late.numBlocks).toBe(0);
});

describe('what a worker has of a prompt', () => {
  const layout = {
    tokensPerBlock: 4,
    groups: [
      fullAttention(),
      slidingWindow(6),
      ssmState('required'),
      fullAttention({ policy: 'optional', sparsityGroup: 'x' }),
    ].map((lifecycle) => ({ lifecycle, buffers: [], pageBytes: 1 })),
  };
  const blocks = Array.from({ length: 6 }, (_, i) => i.toString(16).padStart(16, '0'));
  const reuseWith = (there: readonly (readonly number[])[], numTokens = 24) => {
    const index = new PrefixIndex({ layout, mostBlocks: 100 });
    index.open('w', 's');
    const changes = there.map((ordinals, group) => ['+', group, ordinals.map((ordinal) => blocks[ordinal])] as const);
    index.take('w', 's', { kind: 'blocks', number: 0, fresh: false, changes });
    return index.reuse('w', blocks, numTokens);
  };
  const ALL = [0, 1, 2, 3, 4, 5];

  test.each([
    ['everything', [ALL, ALL, ALL], 24],
    ['everything but an optional group', [ALL, ALL, ALL, []], 24],
    ['a state in the middle', [ALL, ALL, [2]], 12],
    ['windows with a hole', [ALL, [0, 1, 2, 5], ALL], 12],
    ['a window at the end only', [ALL, [4, 5], ALL], 24],
    ['full attention with a hole', [[0, 1, 3, 4, 5], ALL, ALL], 8],
    ['no state', [ALL, ALL, []], 0],
    ['only what is optional', [[], [], [], ALL], 0],
  ] as const)('of %s it can use so much', (_, there, endpoint) => {
    expect(reuseWith(there).endpoint).toBe(endpoint);
  });

  test('is counted for each required group by itself: what need not be moved', () => {
    expect(reuseWith([[0, 1, 2], [4, 5], []]).held).toEqual([12, 24, 0]);
    expect(reuseWith([ALL, [5], [5]]).held).toEqual([24, 12, 24]);
    // The state of another length is none.
    expect(reuseWith([ALL, ALL, [5]], 26).held[2]).toBe(0);
  });
});

describe('an index', () => {
  const layout = { tokensPerBlock: 4, groups: [{ lifecycle: fullAttention(), buffers: [], pageBytes: 1 }] };
  const hash = (number: number) => number.toString(16).padStart(16, '0');
  const blocks = (number: number, hashes: readonly number[], fresh = false) =>
    ({ kind: 'blocks', number, fresh, changes: [['+', 0, hashes.map(hash)]] }) as const;

  test('has room for so many blocks, and forgets the oldest of the one who has most', () => {
    const index = new PrefixIndex({ layout, mostBlocks: 100 });
    for (const worker of ['large', 'small']) index.open(worker, 's');
    index.take('small', 's', blocks(0, [1, 2, 3]));
    for (let number = 0; number < 50; number++)
      index.take(
        'large',
        's',
        blocks(
          number,
          Array.from({ length: 10 }, (_, i) => 1000 + number * 10 + i),
        ),
      );
    expect(index.numBlocks).toBeLessThanOrEqual(100);
    expect(index.numBlocks).toBeGreaterThan(80);
    expect(index.blocksOf('small', 0)).toHaveLength(3);
    expect(index.blocksOf('large', 0)).toContain(hash(1499));
    expect(index.blocksOf('large', 0)).not.toContain(hash(1000));
    index.forget('large');
    expect(index.numBlocks).toBe(3);
  });

  test('trusts nothing of a worker that it missed some of, until it begins anew', () => {
    const index = new PrefixIndex({ layout, mostBlocks: 100 });
    index.open('w', 's');
    index.take('w', 's', blocks(0, [1]));
    index.take('w', 's', blocks(2, [3]));
    expect(index.numBlocks).toBe(0);
    index.take('w', 's', blocks(1, [2]));
    expect(index.isBehind('w', 's', 3)).toBe(true);
    index.take('w', 's', blocks(3, [4], true));
    expect(index.isBehind('w', 's', 4)).toBe(false);
    expect(index.blocksOf('w', 0)).toEqual([hash(4)]);
    // What comes late, or of another run, changes nothing.
    index.take('w', 's', blocks(2, [5], true));
    index.take('w', 'earlier', blocks(4, [6]));
    expect(index.blocksOf('w', 0)).toEqual([hash(4)]);
    // The end was lost: only the status tells.
    expect(index.isBehind('w', 's', 6)).toBe(true);
    index.open('w', 'next');
    expect(index.numBlocks).toBe(0);
  });
});

test('what waits to be announced is cut into messages, and when it is too much it begins anew', () => {
  const announcer = new BlockAnnouncer(LAYOUT);
  const key = (number: number) => {
    const bytes = new Uint8Array(32);
    new DataView(bytes.buffer).setUint32(28, number);
    return bytes;
  };
  const group = LAYOUT.groups.findIndex(({ lifecycle }) => lifecycle.kind === 'ssm');
  const stored = (from: number, count: number) =>
    announcer.push([
      {
        id: 0,
        type: 'stored',
        groupId: 9 as never,
        lifecycle: LAYOUT.groups[group].lifecycle,
        tier: 0,
        medium: 'device',
        scope: {} as never,
        parentKey: null,
        blocks: Array.from({ length: count }, (_, i) => ({ key: key(from + i), tokens: [], priority: 0 })),
      },
    ]);
  stored(0, MOST_HASHES + 1);
  const [first, second] = [announcer.take(), announcer.take()];
  expect([first, second].map((message) => message?.changes.map(([, , hashes]) => hashes.length))).toEqual([[MOST_HASHES], [1]]);
  expect(announcer.take()).toBeUndefined();
  for (let i = 0; i < 70; i++) stored(10_000 + i * 4096, 4096);
  expect(announcer.take()).toMatchObject({ fresh: true, number: 2 });
});
