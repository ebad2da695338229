import {
  type BufferConfig,
  type CacheConfigInput,
  defineCacheConfig,
  type LayerConfig,
  StateError,
} from '@bufferwise/core-policy';
import { describe, expect, it } from 'vitest';
import { StorageLayout } from '../layout/storage-layout.ts';
import { type ExplainOptions, explain } from './explain.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

function explained(layers: LayerConfig[], options: ExplainOptions, more: Partial<CacheConfigInput> & { tokensPerBlock: number }) {
  return explain(
    defineCacheConfig({ layers, tiers: [{ tier: 'device', quota: 64 * MIB }], maxUtilForResume: 1, ...more }),
    options,
  );
}

const keysAndValues = (size: number): BufferConfig[] => ['key', 'value'].map((role) => ({ role, size }));
const attention = (layerId: number, more: Partial<LayerConfig> & { buffers: BufferConfig[] }) =>
  ({ type: 'attention', layerId, ...more }) as LayerConfig;

describe('a model with full attention only', () => {
  // 2 layers × (key + value) × 8 KiB = 32 KiB a block of 64 tokens; 64 MiB hold 2048 of them.
  const layers = [0, 1].map((layerId) => attention(layerId, { buffers: keysAndValues(8 * KIB) }));
  const explanation = explained(layers, { lengths: [1, 64, 65, 1000], prefillChunks: [512] }, { tokensPerBlock: 64 });
  const [group] = explanation.groups;

  it('has one group, whose page holds the buffers of both layers', () => {
    expect(explanation).toMatchObject({ tokensPerBlock: 64, numLayers: 2, numBuffers: 4, systemPromptLength: 0 });
    expect(explanation.groups).toHaveLength(1);
    expect(group).toMatchObject({
      id: 0,
      words: 'attention to every token',
      policy: 'required',
      poolGroup: 0,
      coldPoolGroup: 0,
      pools: [{ slotBytes: 32 * KIB, numBuffers: 4, bufferBytes: 8 * KIB }],
      pageBytes: 32 * KIB,
    });
    expect(group.buffers[3]).toEqual({
      layerId: 1,
      role: 'value',
      pageBytes: 8 * KIB,
      expansion: 1,
      tokensPerPage: 64,
      pool: 0,
      offset: 24 * KIB,
    });
  });

  it('costs 512 bytes a token, in whole pages, without a limit and without scratch', () => {
    expect(group.bytesPerToken).toEqual({ num: 512, den: 1 });
    expect([group.maxRequestPages, group.maxRequestBytes, group.scratch]).toEqual([null, null, null]);
    expect(group.requests).toEqual([
      { tokens: 1, pages: 1, bytes: 32 * KIB },
      { tokens: 64, pages: 1, bytes: 32 * KIB },
      { tokens: 65, pages: 2, bytes: 64 * KIB },
      { tokens: 1000, pages: 16, bytes: 512 * KIB },
    ]);
  });

  it('fits as many requests as the quota has pages for', () => {
    expect(explanation.totals).toEqual({
      pageBytes: 32 * KIB,
      bytesPerToken: { num: 512, den: 1 },
      bytesPerLateToken: { num: 512, den: 1 },
      maxFixedBytes: 0,
      requests: [
        { tokens: 1, bytes: 32 * KIB, numFitting: 2048 },
        { tokens: 64, bytes: 32 * KIB, numFitting: 2048 },
        { tokens: 65, bytes: 64 * KIB, numFitting: 1024 },
        { tokens: 1000, bytes: 512 * KIB, numFitting: 128 },
      ],
      scratch: [{ tokens: 512, bytesSaved: 0 }],
    });
    expect(explanation.tiers).toEqual([
      {
        tier: 'device',
        askedQuota: 64 * MIB,
        quota: 64 * MIB,
        raised: false,
        granularity: 2 * MIB,
        slotsBytes: 64 * MIB,
        poolGroups: [{ groupIds: [0], policy: 'required', slotBytes: 32 * KIB, slots: 2048, minSlots: 1, slotsBytes: 64 * MIB }],
      },
    ]);
  });

  it('shares a system prompt: 15 whole blocks once, 1 page more for each request', () => {
    const options = { lengths: [1000], systemPromptLength: 960 };
    const shared = explained(layers, options, { tokensPerBlock: 64 });
    expect(shared.systemPromptLength).toBe(960);
    expect(shared.totals.requests[0].numFitting).toBe(2048 - 15);
    // With a twentieth left free: 1945 of 2048 slots may be in use.
    const withRoom = explained(layers, options, { tokensPerBlock: 64, maxUtilForResume: 0.95 });
    expect(withRoom.totals.requests[0].numFitting).toBe(1945 - 15);
  });
});

describe('a model with five windows to each full layer', () => {
  // tokensPerBlock 16; page of a layer: key + value of 2 KiB. Windows of 64: 10 layers, 40 KiB a page; full: 2 layers, 8 KiB.
  const layers = Array.from({ length: 12 }, (_, layerId) =>
    attention(layerId, {
      buffers: keysAndValues(2 * KIB),
      ...(layerId % 6 === 5 ? {} : { slidingWindowSize: 64 }),
    }),
  );
  const options = { lengths: [16, 80, 81, 1024], prefillChunks: [63, 1024] };
  const explanation = explained(layers, options, { tokensPerBlock: 16, swaScratchReuse: { maxRewindLen: 0 } });
  const [window, full] = explanation.groups;

  it('has a group of windows and a group of the rest', () => {
    expect(window.words).toBe('attention to the last 64 tokens');
    expect(window.buffers).toHaveLength(20);
    expect(full.buffers.map(({ layerId }) => layerId)).toEqual([5, 5, 11, 11]);
    expect([window.pageBytes, full.pageBytes]).toEqual([40 * KIB, 8 * KIB]);
    expect([window.bytesPerToken, full.bytesPerToken]).toEqual([
      { num: 2560, den: 1 },
      { num: 512, den: 1 },
    ]);
  });

  it('a window holds the pages it can see: five at the worst phase, four where a block has just been filled', () => {
    // 63 earlier tokens and the one written: from token 16 on when the 80th is written, that is blocks 1 to 4.
    // The 81st reads back to token 17, in block 1: blocks 1 to 5.
    expect([window.maxRequestPages, window.maxRequestBytes]).toEqual([5, 200 * KIB]);
    expect(window.requests.map(({ pages }) => pages)).toEqual([1, 4, 5, 4]);
    expect(full.requests.map(({ pages }) => pages)).toEqual([1, 5, 6, 64]);
    expect(full.maxRequestPages).toBe(null);
  });

  it('the totals add up: 3 KiB a token, 512 bytes once every window is full', () => {
    expect(explanation.totals.bytesPerToken).toEqual({ num: 3072, den: 1 });
    expect(explanation.totals.bytesPerLateToken).toEqual({ num: 512, den: 1 });
    expect(explanation.totals.maxFixedBytes).toBe(200 * KIB);
    expect(explanation.totals.requests.map(({ bytes }) => bytes)).toEqual([
      48 * KIB,
      4 * 40 * KIB + 5 * 8 * KIB,
      5 * 40 * KIB + 6 * 8 * KIB,
      4 * 40 * KIB + 64 * 8 * KIB,
    ]);
  });

  it('scratch of ten equal layers takes a tenth of a slot a block', () => {
    // After 1024 tokens blocks 0 to 59 are stale: floor((1024 + 1 - 64) / 16) = 60 blocks in 6 slots, beside 4 pages.
    expect(window.scratch).toEqual({
      enabled: true,
      maxRewindLen: 0,
      fraction: { num: 1, den: 10 },
      chunks: [
        { tokens: 63, pages: 4, scratchBlocks: 0, scratchSlots: 0, slots: 4, bytesSaved: 0 },
        { tokens: 1024, pages: 64, scratchBlocks: 60, scratchSlots: 6, slots: 10, bytesSaved: 54 * 40 * KIB },
      ],
    });
    expect(full.scratch).toBe(null);
    expect(explanation.totals.scratch).toEqual([
      { tokens: 63, bytesSaved: 0 },
      { tokens: 1024, bytesSaved: 54 * 40 * KIB },
    ]);
  });

  it('tells what scratch would save where it is off, and what a rewind margin takes back', () => {
    const off = explained(layers, options, { tokensPerBlock: 16 });
    expect(off.groups[0].scratch).toEqual({ ...window.scratch, enabled: false });
    const margin = explained(layers, options, { tokensPerBlock: 16, swaScratchReuse: { maxRewindLen: 64 } });
    // Stale at 960 tokens: floor(897 / 16) = 56 blocks in ceil(5.6) = 6 slots, beside 8 pages.
    expect(margin.groups[0].scratch?.chunks[1]).toEqual({
      tokens: 1024,
      pages: 64,
      scratchBlocks: 56,
      scratchSlots: 6,
      slots: 14,
      bytesSaved: 50 * 40 * KIB,
    });
  });
});

describe('a hybrid model with recurrent state', () => {
  // State: 3 layers × 40 KiB = 120 KiB a request. Attention: 1 layer × 2 × 4 KiB a block of 32 tokens.
  const layers: LayerConfig[] = [
    ...[0, 1, 2].map(
      (layerId): LayerConfig => ({
        type: 'ssm',
        layerId,
        buffers: [
          { role: 'ssm_state', size: 32 * KIB },
          { role: 'conv_state', size: 8 * KIB },
        ],
      }),
    ),
    attention(3, { buffers: keysAndValues(4 * KIB) }),
  ];
  const explanation = explained(layers, { lengths: [1, 3200] }, { tokensPerBlock: 32, initialPoolRatio: [15, 17] });
  const [state, attended] = explanation.groups;

  it('state costs the same at every length, and nothing by the token', () => {
    expect(state).toMatchObject({
      words: 'recurrent state',
      pools: [
        { slotBytes: 96 * KIB, numBuffers: 3, bufferBytes: 32 * KIB },
        { slotBytes: 24 * KIB, numBuffers: 3, bufferBytes: 8 * KIB },
      ],
      pageBytes: 120 * KIB,
      bytesPerToken: null,
      maxRequestPages: 1,
      maxRequestBytes: 120 * KIB,
      scratch: null,
    });
    expect(state.buffers[1]).toMatchObject({ role: 'conv_state', tokensPerPage: null, expansion: 1, pool: 1, offset: 0 });
    expect(state.requests.map(({ bytes }) => bytes)).toEqual([120 * KIB, 120 * KIB]);
  });

  it('the totals hold state apart from tokens', () => {
    expect(attended.bytesPerToken).toEqual({ num: 256, den: 1 });
    expect(explanation.totals).toMatchObject({
      pageBytes: 128 * KIB,
      bytesPerToken: { num: 256, den: 1 },
      bytesPerLateToken: { num: 256, den: 1 },
      maxFixedBytes: 120 * KIB,
    });
    expect(explanation.totals.requests.map(({ bytes }) => bytes)).toEqual([128 * KIB, 920 * KIB]);
  });

  it('the group with less room decides how many requests fit', () => {
    // 32 grains of 2 MiB, shared 15 : 17. State gets 15: 12 grains of 96 KiB slots hold 256, 3 of 24 KiB slots hold 256 as well.
    // Attention gets 17: 34 MiB of 8 KiB slots.
    const [{ poolGroups }] = explanation.tiers;
    expect(poolGroups.map(({ slots }) => slots)).toEqual([256, 4352]);
    expect(explanation.totals.requests.map(({ numFitting }) => numFitting)).toEqual([256, 43]);
  });
});

describe('a layer split over three policies, with a private replay ring', () => {
  // Layer 0: keys and values for all, a snapshot for whoever wants it, a ring for the request alone.
  const layers: LayerConfig[] = [
    attention(0, { buffers: keysAndValues(1 * KIB), slidingWindowSize: 33 }),
    {
      type: 'ssm',
      layerId: 1,
      reusePolicy: 'optional',
      buffers: [
        { role: 'ssm_state', size: 6 * KIB },
        { role: 'replay_x', size: 1 * KIB, reusePolicy: 'private' },
        { role: 'replay_dt', size: 1 * KIB, reusePolicy: 'private' },
      ],
    },
  ];
  const tiers = [
    { tier: 'device', quota: 6 * MIB },
    { tier: 'host', quota: 100 * KIB },
  ] as const;
  const explanation = explained(layers, { lengths: [96, 97] }, { tokensPerBlock: 32, tiers });

  it('has a group for each policy, and no two of them share a pool though slots are equal', () => {
    expect(explanation.groups.map(({ policy, words, pageBytes }) => [policy, words, pageBytes])).toEqual([
      ['required', 'attention to the last 33 tokens', 2 * KIB],
      ['optional', 'recurrent state', 6 * KIB],
      ['private', 'recurrent state', 2 * KIB],
    ]);
    expect(explanation.groups.map(({ poolGroup, coldPoolGroup }) => [poolGroup, coldPoolGroup])).toEqual([
      [0, 0],
      [1, 1],
      [2, 2],
    ]);
  });

  it('a request holds the window and two states', () => {
    // The 96th token reads back to token 63, in block 1: two pages. The 97th reads back to token 64: blocks 2 and 3.
    expect(explanation.groups[0].requests.map(({ pages }) => pages)).toEqual([2, 2]);
    expect(explanation.totals.requests.map(({ bytes }) => bytes)).toEqual([12 * KIB, 12 * KIB]);
    expect(explanation.totals.maxFixedBytes).toBe(2 * 2 * KIB + 6 * KIB + 2 * KIB);
    expect(explanation.totals.bytesPerLateToken).toEqual({ num: 0, den: 1 });
  });

  it('each tier has slots for each of them', () => {
    const [device, host] = explanation.tiers;
    // The last resort of weights: a window of 33 over 2048 tokens and one more takes 2 pages; every pool takes one grain of 2 MiB.
    expect(device.poolGroups.map(({ groupIds, slots, minSlots }) => [groupIds, slots, minSlots])).toEqual([
      [[0], 1024, 2],
      [[1], 341, 1],
      [[2], 1024, 1],
    ]);
    expect([device.quota, device.raised, device.slotsBytes]).toEqual([6 * MIB, false, (1024 * 2 + 341 * 6 + 1024 * 2) * KIB]);
    expect(host).toMatchObject({ tier: 'host', askedQuota: 100 * KIB, quota: 100 * KIB, granularity: 4 * KIB, raised: false });
    expect(host.poolGroups.map(({ slotBytes, minSlots }) => [slotBytes, minSlots])).toEqual([
      [2 * KIB, 1],
      [6 * KIB, 1],
      [2 * KIB, 1],
    ]);
  });

  it('a quota below the minimum is raised, and says so', () => {
    const [device] = explained(layers, {}, { tokensPerBlock: 32, tiers: [{ tier: 'device', quota: 1 }] }).tiers;
    expect([device.askedQuota, device.quota, device.raised]).toEqual([1, 6 * MIB, true]);
  });
});

describe('buffers with pages of fewer tokens', () => {
  // 48 tokens a block: 3 pages of 16 tokens and 100 bytes, and one page of 300 bytes: 600 bytes a block.
  const layers = [
    attention(0, {
      buffers: [
        { role: 'key', size: 100, tokensPerBlockOverride: 16 },
        { role: 'value', size: 300 },
        { role: 'index', size: 7, tokensPerBlockOverride: 1 },
      ],
    }),
  ];
  const [group] = explained(layers, { lengths: [49] }, { tokensPerBlock: 48 }).groups;

  it('are told as pages, and as what a slot holds', () => {
    expect(
      group.buffers.map(({ role, pageBytes, expansion, tokensPerPage, pool, offset }) => [
        role,
        pageBytes,
        expansion,
        tokensPerPage,
        pool,
        offset,
      ]),
    ).toEqual([
      ['key', 100, 3, 16, 0, 0],
      ['value', 300, 1, 48, 0, 300],
      ['index', 7, 48, 1, 1, 0],
    ]);
    expect(group.pools).toEqual([
      { slotBytes: 600, numBuffers: 2, bufferBytes: 300 },
      { slotBytes: 336, numBuffers: 1, bufferBytes: 336 },
    ]);
  });

  it('cost an exact fraction of a byte a token', () => {
    expect(group.pageBytes).toBe(936);
    expect(group.bytesPerToken).toEqual({ num: 39, den: 2 });
    expect(group.requests).toEqual([{ tokens: 49, pages: 2, bytes: 1872 }]);
  });
});

describe('scratch of layers with unequal numbers of buffers', () => {
  // Slots of three 8 KiB buffers, two of them of layer 0: two thirds of a slot a block.
  const layers = [
    attention(0, { buffers: keysAndValues(8 * KIB), slidingWindowSize: 128 }),
    attention(1, { buffers: [{ role: 'key', size: 8 * KIB }], slidingWindowSize: 128 }),
  ];

  it('is ruled by the layer that takes most of a slot', () => {
    const options = { lengths: [], prefillChunks: [512, 576, 2048] };
    const [{ scratch }] = explained(layers, options, { tokensPerBlock: 64, swaScratchReuse: {} }).groups;
    expect(scratch?.fraction).toEqual({ num: 2, den: 3 });
    // Stale: floor(385 / 64) = 6, floor(449 / 64) = 7, floor(1921 / 64) = 30 blocks.
    expect(scratch?.chunks).toEqual([
      { tokens: 512, pages: 8, scratchBlocks: 6, scratchSlots: 4, slots: 6, bytesSaved: 2 * 24 * KIB },
      { tokens: 576, pages: 9, scratchBlocks: 7, scratchSlots: 5, slots: 7, bytesSaved: 2 * 24 * KIB },
      { tokens: 2048, pages: 32, scratchBlocks: 30, scratchSlots: 20, slots: 22, bytesSaved: 10 * 24 * KIB },
    ]);
  });
});

it('an optional window holds what its last whole block needs, under minimal snapshots', () => {
  const layers = [attention(0, { buffers: keysAndValues(KIB), slidingWindowSize: 2, reusePolicy: 'optional' })];
  const pages = (commitMinSnapshot: boolean) =>
    explained(layers, { lengths: [64, 65, 66, 96] }, { tokensPerBlock: 32, commitMinSnapshot }).groups[0].requests.map(
      (request) => request.pages,
    );
  expect(pages(false)).toEqual([1, 2, 1, 1]);
  expect(pages(true)).toEqual([2, 2, 2, 2]);
});

it('a config without buffers costs nothing, and nothing limits it', () => {
  const explanation = explained([attention(0, { buffers: [] })], { lengths: [8] }, { tokensPerBlock: 32 });
  expect(explanation).toMatchObject({ numLayers: 0, numBuffers: 0, groups: [] });
  expect(explanation.totals).toMatchObject({ pageBytes: 0, bytesPerToken: { num: 0, den: 1 }, maxFixedBytes: 0 });
  expect(explanation.totals.requests).toEqual([{ tokens: 8, bytes: 0, numFitting: Infinity }]);
});

it('is the same with a layout that the caller has already, and changes nothing in the config', () => {
  const config = defineCacheConfig({
    tokensPerBlock: 32,
    layers: [attention(0, { buffers: keysAndValues(KIB), slidingWindowSize: 64 })],
    tiers: [{ tier: 'device', quota: 4 * MIB }],
  });
  const explanation = explain(config);
  expect(explain(config, { layout: StorageLayout.fromConfig(config) })).toEqual(explanation);
  expect(explanation.totals.requests.map(({ tokens }) => tokens)).toEqual([1024, 8192, 65536]);
  expect(explanation.totals.scratch.map(({ tokens }) => tokens)).toEqual([2048]);
});

it('refuses lengths that are none', () => {
  const layers = [attention(0, { buffers: keysAndValues(KIB) })];
  const call = (options: ExplainOptions) => () => explained(layers, options, { tokensPerBlock: 32 });
  for (const options of [
    { lengths: [8, 0] },
    { lengths: [1.5] },
    { prefillChunks: [0] },
    { prefillChunks: [Number.NaN] },
    { systemPromptLength: -1 },
  ]) {
    expect(call(options)).toThrow(StateError);
    expect(call(options)).toThrow(expect.objectContaining({ code: 'invalid-length' }));
  }
  expect(call({ lengths: [1], prefillChunks: [1], systemPromptLength: 0 })).not.toThrow();
});
