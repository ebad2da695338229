import { describe, expect, test } from 'vitest';
import {
  AmbiguousLayerError,
  type BufferConfig,
  ConfigError,
  defineCacheConfig,
  type LayerConfig,
  type Lifecycle,
  LifecycleRegistry,
  REUSE_POLICIES,
  type ReusePolicy,
  UnknownBufferError,
} from '../../src/index.ts';
import { attention, buffer, input, ssm } from '../builders.ts';

const registryOf = (layers: readonly LayerConfig[], tokensPerBlock = 4) =>
  LifecycleRegistry.fromConfig(defineCacheConfig(input({ tokensPerBlock, layers })));

const policyOf = (layers: readonly LayerConfig[], layerId: number, role: string) => {
  const registry = registryOf(layers);
  return registry.get(registry.getBufferGroupId(layerId, role)).policy;
};

describe('R1: a buffer has its own policy, else its layer’s, else required', () => {
  const said = [undefined, ...REUSE_POLICIES];
  const rows = (['attention', 'ssm'] as const).flatMap((type) =>
    said.flatMap((layer) => said.map((own) => [type, layer, own, own ?? layer ?? 'required'] as const)),
  );

  test.each(rows)('%s layer says %s, buffer says %s: %s', (type, layerPolicy, bufferPolicy, expected) => {
    const fields = { buffers: [buffer('x', { reusePolicy: bufferPolicy })], reusePolicy: layerPolicy };
    const layer = type === 'ssm' ? ssm(0, fields) : attention(0, fields);
    expect(policyOf([layer], 0, 'x')).toBe(expected);
    expect(defineCacheConfig(input({ layers: [layer] })).layers[0].buffers[0].reusePolicy).toBe(expected);
  });
});

describe('R2: a lifecycle is what it means, not which layer made it', () => {
  test.each<[string, number, Partial<LayerConfig>, Partial<LayerConfig>]>([
    ['the same window', 1, { slidingWindowSize: 8 }, { slidingWindowSize: 8 }],
    ['another window', 2, { slidingWindowSize: 8 }, { slidingWindowSize: 9 }],
    ['a window and none', 2, { slidingWindowSize: 8 }, {}],
    [
      '5 and 8 sink tokens, two blocks both',
      1,
      { slidingWindowSize: 128, numSinkTokens: 5 },
      { slidingWindowSize: 128, numSinkTokens: 8 },
    ],
    [
      '4 and 5 sink tokens, one block and two',
      2,
      { slidingWindowSize: 128, numSinkTokens: 4 },
      { slidingWindowSize: 128, numSinkTokens: 5 },
    ],
    [
      '8 and 9 sink tokens, two blocks and three',
      2,
      { slidingWindowSize: 128, numSinkTokens: 8 },
      { slidingWindowSize: 128, numSinkTokens: 9 },
    ],
    ['no sinks, said and unsaid', 1, { slidingWindowSize: 128, numSinkTokens: 0 }, { slidingWindowSize: 128 }],
    ['the same sparsity group', 1, { sparsityGroup: 's' }, { sparsityGroup: 's' }],
    ['another sparsity group', 2, { sparsityGroup: 's' }, { sparsityGroup: 't' }],
    ['a sparsity group and none', 2, { sparsityGroup: 's' }, {}],
    ['required, said and unsaid', 1, { reusePolicy: 'required' }, {}],
    ['another policy', 2, { reusePolicy: 'optional' }, { reusePolicy: 'private' }],
  ])('two attention layers with %s make %i', (_, expected, a, b) => {
    expect(registryOf([attention(0, a as object), attention(1, b as object)]).size).toBe(expected);
  });

  test('size, role, coalescing group and override do not part lifecycles', () => {
    const buffers: BufferConfig[] = [
      buffer('key'),
      buffer('scale', { size: 64, coalescingGroup: 'a' }),
      buffer('index', { tokensPerBlockOverride: 2 }),
    ];
    expect(registryOf([attention(0, { buffers })]).size).toBe(1);
  });

  test('attention and recurrent state never share one', () => {
    expect(registryOf([attention(0), ssm(1)]).size).toBe(2);
  });

  test('a hundred layers that use every policy have three lifecycles for each kind of attention, and three of state', () => {
    const buffers = REUSE_POLICIES.map((reusePolicy) => buffer(reusePolicy, { reusePolicy }));
    const layers = Array.from({ length: 100 }, (_, layerId): LayerConfig => {
      if (layerId % 4 === 0) return ssm(layerId, { buffers });
      return attention(layerId, { buffers, ...(layerId % 4 === 1 ? { slidingWindowSize: 128 } : {}) });
    });
    const registry = registryOf(layers);
    expect(registry.size).toBe(9);
    expect(registry.bufferGrouping.map((group) => group.length)).toEqual([25, 25, 25, 25, 25, 25, 50, 50, 50]);
  });
});

describe('R3: a lifecycle exists only for a buffer that exists', () => {
  test.each<[string, LayerConfig]>([
    ['no buffers', attention(0, { buffers: [], slidingWindowSize: 8 })],
    [
      'absent buffers only',
      attention(0, { buffers: [buffer('key', { size: 0 }), buffer('value', { size: 0 })], slidingWindowSize: 8 }),
    ],
    ['no state', ssm(0, { buffers: [] })],
    ['absent state only', ssm(0, { buffers: [buffer('ssm_state', { size: 0 })] })],
  ])('a layer with %s registers none, and takes no id from the next', (_, empty) => {
    const registry = registryOf([empty, attention(1)]);
    expect(registry.size).toBe(1);
    expect(registry.getLayerGroupId(1)).toBe(0);
    expect(() => registry.getLayerGroupId(0)).toThrow(UnknownBufferError);
    expect(registry.layerGrouping).toEqual([[1]]);
  });

  test('an absent buffer takes the lifecycle with it that only it had', () => {
    const layer = (size: number) => attention(0, { buffers: [buffer('index', { size, reusePolicy: 'private' }), buffer('key')] });
    expect(registryOf([layer(64)]).lifecycles.map(({ policy }) => policy)).toEqual(['private', 'required']);
    expect(registryOf([layer(0)]).lifecycles.map(({ policy }) => policy)).toEqual(['required']);
  });
});

describe('R4: every layer is checked by itself', () => {
  test.each<[string, Partial<LayerConfig>, string]>([
    ['a window of 0', { slidingWindowSize: 0 }, 'slidingWindowSize'],
    ['sinks without a window', { numSinkTokens: 4 }, 'numSinkTokens'],
    ['an unknown policy', { reusePolicy: 'shared' as ReusePolicy }, 'reusePolicy'],
    ['a negative id', { layerId: -1 }, 'layerId'],
  ])('%s is refused with many buffers, with absent ones, and with none', (_, fault, field) => {
    for (const buffers of [[buffer('key'), buffer('value')], [buffer('key', { size: 0 })], []]) {
      const faulty = attention(1, { buffers, ...(fault as object) });
      expect(() => defineCacheConfig(input({ layers: [attention(0), faulty] }))).toThrow(
        expect.objectContaining({ name: 'ConfigError', path: `layers[1].${field}` }),
      );
    }
  });
});

describe('R5: buffers of size 0 go, the others keep their policy', () => {
  test.each<[string, number]>([
    ['nothing absent', -1],
    ['the first absent', 0],
    ['the second absent', 1],
    ['the third absent', 2],
  ])('%s', (_, absent) => {
    const policies: [role: string, own: ReusePolicy | undefined, expected: ReusePolicy][] = [
      ['inherits', undefined, 'optional'],
      ['overrides', 'private', 'private'],
      ['returns', 'required', 'required'],
    ];
    const buffers = policies.map(([role, reusePolicy], index) => buffer(role, { reusePolicy, size: index === absent ? 0 : 64 }));
    const survivors = policies.filter((_policy, index) => index !== absent);
    for (const layer of [attention(0, { buffers, reusePolicy: 'optional' }), ssm(0, { buffers, reusePolicy: 'optional' })]) {
      const config = defineCacheConfig(input({ layers: [layer] }));
      expect(config.layers[0].buffers.map(({ role, reusePolicy }) => [role, reusePolicy])).toEqual(
        survivors.map(([role, , expected]) => [role, expected]),
      );
      for (const [role, , expected] of survivors) expect(policyOf([layer], 0, role)).toBe(expected);
    }
  });
});

describe('R6: groups are asked by layer and role', () => {
  // One layer that keeps its state for everybody, offers its convolution tail, and holds a replay ring for itself.
  const mamba = ssm(4, {
    buffers: [
      buffer('ssm_state'),
      buffer('conv_state', { reusePolicy: 'optional' }),
      buffer('replay_x', { reusePolicy: 'private' }),
      buffer('replay_dt', { reusePolicy: 'private' }),
    ],
  });
  const registry = registryOf([attention(2), mamba, attention(6)]);

  test.each([
    [2, 'key', 0],
    [2, 'value', 0],
    [4, 'ssm_state', 1],
    [4, 'conv_state', 2],
    [4, 'replay_x', 3],
    [4, 'replay_dt', 3],
    [6, 'key', 0],
  ])('layer %i, %s: group %i', (layerId, role, group) => {
    expect(registry.getBufferGroupId(layerId, role)).toBe(group);
    expect(registry.bufferGrouping[group]).toContainEqual({ layerId, role });
  });
});

describe('R7: the layer view stays where every layer has one group', () => {
  test('and answers as before', () => {
    const registry = registryOf([attention(3), attention(1, { slidingWindowSize: 8 }), attention(2), ssm(0)]);
    expect([3, 1, 2, 0].map((layerId) => registry.getLayerGroupId(layerId))).toEqual([0, 1, 0, 2]);
    expect(registry.layerGrouping).toEqual([[3, 2], [1], [0]]);
  });

  test('and refuses a split layer by name, with its groups', () => {
    const buffers = [buffer('key'), buffer('index', { reusePolicy: 'private' })];
    const registry = registryOf([attention(3), attention(8, { buffers })]);
    for (const ask of [() => registry.getLayerGroupId(8), () => registry.layerGrouping]) {
      expect(ask).toThrow(AmbiguousLayerError);
      expect(ask).toThrow(expect.objectContaining({ layerId: 8, groups: [0, 1] }));
    }
    expect(registry.getLayerGroupId(3)).toBe(0);
  });

  test('also for a layer whose only odd buffer is absent', () => {
    const buffers = [buffer('key'), buffer('index', { reusePolicy: 'private', size: 0 })];
    expect(registryOf([attention(8, { buffers })]).layerGrouping).toEqual([[8]]);
  });
});

describe('configurations of the predecessor', () => {
  test('L4: two of four layers in a sparsity group make two lifecycles', () => {
    const registry = registryOf([0, 1, 2, 3].map((id) => attention(id, id % 2 === 1 ? { sparsityGroup: 's' } : {})));
    expect(registry.layerGrouping).toEqual([
      [0, 2],
      [1, 3],
    ]);
  });

  test('L5: alternating windows, the last two layers sparse, make four lifecycles', () => {
    const registry = registryOf(
      [0, 1, 2, 3].map((id) =>
        attention(id, { slidingWindowSize: id % 2 === 0 ? 128 : 256, ...(id < 2 ? {} : { sparsityGroup: 's' }) }),
      ),
    );
    expect(registry.layerGrouping).toEqual([[0], [1], [2], [3]]);
  });

  test('L6: 5 and 8 sink tokens at 4 tokens a block are two sink blocks', () => {
    const layers = [5, 8].map((numSinkTokens, id) => attention(id, { slidingWindowSize: 128, numSinkTokens }));
    expect(registryOf(layers).lifecycles).toEqual<Lifecycle[]>([
      { kind: 'attention', windowSize: 128, numSinkBlocks: 2, sparsityGroup: null, policy: 'required' },
    ]);
  });

  test.each([
    [undefined, true],
    [true, true],
    [false, false],
  ])('L8: recurrent state with commitMinSnapshot %s is accepted: %s', (commitMinSnapshot, accepted) => {
    const define = () => defineCacheConfig(input({ layers: [ssm(0)], commitMinSnapshot, enablePartialReuse: true }));
    if (accepted) expect(define().commitMinSnapshot).toBe(true);
    else expect(define).toThrow(expect.objectContaining({ name: 'ConfigError', path: 'commitMinSnapshot' }));
  });

  test.each<[number[], string | null]>([
    [[], 'initialPoolRatio'],
    [[1], 'initialPoolRatio'],
    [[0, 1], 'initialPoolRatio[0]'],
    [[-0.1, 1.1], 'initialPoolRatio[0]'],
    [[0.4, 0.5], null],
  ])('L9: two lifecycles and the pool ratio %o are refused at %s', (initialPoolRatio, path) => {
    const define = () => defineCacheConfig(input({ layers: [attention(0), ssm(1)], initialPoolRatio }));
    if (path === null) expect(define().initialPoolRatio).toEqual(initialPoolRatio);
    else expect(define).toThrow(expect.objectContaining({ name: 'ConfigError', path }));
  });

  test.each([0, -0.1, 1.1, Number.NaN])('L10: maxUtilForResume %d is refused by name', (maxUtilForResume) => {
    const define = () => defineCacheConfig(input({ maxUtilForResume }));
    expect(define).toThrow(ConfigError);
    expect(define).toThrow(/maxUtilForResume must be in/);
  });

  test('P6: three layers with the same window and three policies make three groups', () => {
    const layers = REUSE_POLICIES.map((reusePolicy, id) => attention(id, { slidingWindowSize: 8, reusePolicy }));
    expect(registryOf(layers).layerGrouping).toEqual([[0], [1], [2]]);
  });
});
