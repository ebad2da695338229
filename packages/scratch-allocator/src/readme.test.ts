import { defineCacheConfig } from '@bufferwise/core-policy';
import { describe, expect, it } from 'vitest';
import { cutPools, devicePools, explain, explainPair, formatExplanation, formatPair } from './index.ts';

describe('the chapter on explanations', () => {
  const attention = (layerId: number, roles: string[], slidingWindowSize?: number) =>
    ({ type: 'attention', layerId, slidingWindowSize, buffers: roles.map((role) => ({ role, size: 8192 })) }) as const;
  const config = defineCacheConfig({
    tokensPerBlock: 64,
    layers: [
      attention(0, ['key', 'value'], 128),
      attention(1, ['key'], 128),
      attention(2, ['key', 'value']),
      {
        type: 'ssm',
        layerId: 3,
        reusePolicy: 'optional',
        buffers: [
          { role: 'ssm_state', size: 65536 },
          { role: 'replay_x', size: 4096, reusePolicy: 'private' },
        ],
      },
    ],
    tiers: [
      { tier: 'device', quota: 64 << 20 },
      { tier: 'host', quota: 100_000 },
    ],
    swaScratchReuse: { maxRewindLen: 64 },
  });

  it('shows the text that comes out', () => {
    const text = formatExplanation(explain(config, { lengths: [1024, 8192, 65536], prefillChunks: [2048] }));
    expect(text).toBe(`4 layers, 7 buffers, 4 groups; 64 tokens a block
A token takes 640 B, 256 B once every window is full. Windows and recurrent state take at most
140 KiB a request.

Group 0, required: attention to the last 128 tokens
  roles       a page  tokens a page  pages a block  pool  layers
  key, value   8 KiB             64              1     0  0
  key          8 KiB             64              1     0  1
  page     24 KiB: 3 × 8 KiB in pool 0; 384 B a token
  request  at most 3 pages, 72 KiB
  scratch  2/3 of a slot a block, but for the last 64 tokens; 2,048 tokens in one step take 23 slots
           instead of 32 and save 216 KiB

Group 1, required: attention to every token
  roles       a page  tokens a page  pages a block  pool  layers
  key, value   8 KiB             64              1     0  2
  page     16 KiB: 2 × 8 KiB in pool 0; 256 B a token
  request  grows with its length

Group 2, optional: recurrent state
  roles      a page  tokens a page  pages a block  pool  layers
  ssm_state  64 KiB              -              1     0  3
  page     64 KiB: 1 × 64 KiB in pool 0
  request  64 KiB at any length

Group 3, private: recurrent state
  roles     a page  tokens a page  pages a block  pool  layers
  replay_x   4 KiB              -              1     0  3
  page     4 KiB: 1 × 4 KiB in pool 0
  request  4 KiB at any length

What a request holds by its length in tokens, and how many such requests fit on the device at a time
  tokens      1,024     8,192     65,536
  group 0    48 KiB    48 KiB     48 KiB
  group 1   256 KiB     2 MiB     16 MiB
  group 2    64 KiB    64 KiB     64 KiB
  group 3     4 KiB     4 KiB      4 KiB
  together  372 KiB  2.11 MiB  16.11 MiB
  fit            62         7          0

Slots of each tier
  tier    a slot  slots  at least   together  policy    groups
  device  24 KiB    682         3  15.98 MiB  required  0
  device  16 KiB  1,024         3     16 MiB  required  1
  device  64 KiB    256         1     16 MiB  optional  2
  device   4 KiB  4,096         1     16 MiB  private   3
  host    24 KiB      1         1     24 KiB  required  0
  host    16 KiB      1         1     16 KiB  required  1
  host    64 KiB      1         1     64 KiB  optional  2
  host     4 KiB      1         1      4 KiB  private   3
  device   64 MiB, in steps of 2 MiB
  host     97.66 KiB asked for, raised to 108 KiB for the slots under "at least"; in steps of 4 KiB`);
  });

  it('shows why buffers are apart', () => {
    const pair = explainPair(config, { layerId: 3, role: 'ssm_state' }, { layerId: 3, role: 'replay_x' });
    expect(pair.sameGroup).toBe(false);
    expect(pair.differences[0]).toEqual({ what: 'policy', a: 'optional', b: 'private' });
    expect(formatPair(pair)).toBe(
      'Buffer "ssm_state" of layer 3 and buffer "replay_x" of layer 3 are in different groups and pools: ' +
        'policy optional against private; slots 64 KiB against 4 KiB; size in a slot 64 KiB against 4 KiB.',
    );
  });
});

it('the chapter on pools that fit says what happens', () => {
  const layers = [0, 1, 2, 3].map((layerId) => ({
    type: 'attention' as const,
    layerId,
    buffers: ['key', 'value'].map((role) => ({ role, size: 64 * 1024 })),
  }));
  const large = defineCacheConfig({ tokensPerBlock: 16, layers, tiers: [{ tier: 'device', quota: 512 * 2 ** 20 }] });
  expect(devicePools(large)).toEqual([{ label: 'pool group 0 pool 0', slotBytes: 524288, numSlots: 1024 }]);
  const fitting = devicePools(cutPools(large, { maxPoolBytes: 128 * 2 ** 20 }));
  expect(fitting.map(({ slotBytes, numSlots }) => slotBytes * numSlots)).toEqual(new Array(4).fill(128 * 2 ** 20));
});
