import { describe, expect, test } from 'vitest';
import { attention, buffer, input, ssm } from '../../test/builders.ts';
import { BufferwiseError } from '../errors/bufferwise-error.ts';
import { ConfigError, type ConfigFaultCode } from '../errors/config-error.ts';
import { type CacheConfigInput, defineCacheConfig } from './cache-config.ts';

const MAX = Number.MAX_SAFE_INTEGER;

/** The control case: valid, with every field that a config can have, at 8 tokens a block. Each row breaks one of them. */
function full(): Record<string, unknown> {
  return {
    tokensPerBlock: 8,
    layers: [
      attention(0),
      {
        type: 'attention',
        layerId: 1,
        buffers: [
          { role: 'key', size: 64, tokensPerBlockOverride: 4, reusePolicy: 'optional', coalescingGroup: 'a' },
          { role: 'value', size: 64 },
        ],
        slidingWindowSize: 16,
        numSinkTokens: 2,
        sparsityGroup: 's',
        reusePolicy: 'private',
      },
      { type: 'ssm', layerId: 2, buffers: [{ role: 'ssm_state', size: 64, reusePolicy: 'required' }], reusePolicy: 'optional' },
    ],
    tiers: [
      { tier: 'device', quota: 1024 },
      { tier: 'host', quota: 1024 },
      { tier: 'disk', quota: 1024, path: 'pages' },
    ],
    enablePartialReuse: true,
    reuseMatchBackoff: 1,
    swaScratchReuse: { maxRewindLen: 4 },
    commitMinSnapshot: true,
    maxUtilForResume: 0.5,
    initialPoolRatio: [1, 2, 3, 4],
    constraints: [{ kvCaches: [{ capacity: 16, historyLength: 8 }], systemPromptLength: 8 }],
    typicalStep: { kvCaches: [{ capacity: 16, historyLength: 8 }] },
  };
}

/** Sets, or with `undefined` removes, the value at a path of the control case. */
function withValue(path: string, value: unknown): CacheConfigInput {
  const config = full();
  const steps = path.split(/[.[\]]+/).filter((step) => step !== '');
  const last = steps.pop() as string;
  const owner = steps.reduce((object, step) => object[step] as Record<string, unknown>, config);
  if (value === undefined) delete owner[last];
  else owner[last] = value;
  return config as unknown as CacheConfigInput;
}

function faultsOf(given: unknown): ConfigError['faults'] {
  try {
    defineCacheConfig(given as CacheConfigInput);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as ConfigError).faults;
  }
  return [];
}

type Row = [path: string, value: unknown, code: ConfigFaultCode];

const notWholeAtLeast = (path: string, min: number, optional: boolean): Row[] => [
  ...(optional ? [] : ([[path, undefined, 'config-missing']] as Row[])),
  [path, null, 'config-wrong-type'],
  [path, '8', 'config-wrong-type'],
  [path, 8n, 'config-wrong-type'],
  [path, true, 'config-wrong-type'],
  [path, [8], 'config-wrong-type'],
  [path, Number.NaN, 'config-not-whole'],
  [path, Number.POSITIVE_INFINITY, 'config-not-whole'],
  [path, Number.NEGATIVE_INFINITY, 'config-not-whole'],
  [path, 8.5, 'config-not-whole'],
  [path, min - 1, 'config-out-of-range'],
  [path, -MAX - 1, 'config-out-of-range'],
  [path, MAX + 1, 'config-out-of-range'],
];

const notAName = (path: string, optional: boolean): Row[] => [
  ...(optional ? [] : ([[path, undefined, 'config-missing']] as Row[])),
  [path, null, 'config-wrong-type'],
  [path, 5, 'config-wrong-type'],
  [path, {}, 'config-wrong-type'],
  [path, '', 'config-empty-name'],
];

const notAPolicy = (path: string): Row[] => [
  [path, null, 'config-wrong-type'],
  [path, 1, 'config-wrong-type'],
  [path, 'REQUIRED', 'config-unknown-value'],
  [path, 'shared', 'config-unknown-value'],
  [path, 'toString', 'config-unknown-value'],
];

const notAnObject = (path: string, optional: boolean): Row[] => [
  ...(optional ? [] : ([[path, null, 'config-wrong-type']] as Row[])),
  [path, 'x', 'config-wrong-type'],
  [path, [], 'config-wrong-type'],
  [path, 0, 'config-wrong-type'],
  [path, () => ({}), 'config-wrong-type'],
];

const notAList = (path: string, optional: boolean): Row[] => [
  ...(optional ? [] : ([[path, undefined, 'config-missing']] as Row[])),
  [path, {}, 'config-wrong-type'],
  [path, 'x', 'config-wrong-type'],
  [path, new Set(), 'config-wrong-type'],
  [path, { length: 0 }, 'config-wrong-type'],
];

const notABoolean = (path: string): Row[] => [
  [path, null, 'config-wrong-type'],
  [path, 0, 'config-wrong-type'],
  [path, 'false', 'config-wrong-type'],
];

const rows: Row[] = [
  ...notWholeAtLeast('tokensPerBlock', 1, false),

  ...notAList('layers', false),
  ['layers', null, 'config-wrong-type'],
  ...notAnObject('layers[0]', false),
  ['layers[0].type', undefined, 'config-missing'],
  ['layers[0].type', 'mamba', 'config-unknown-value'],
  ['layers[0].type', 0, 'config-wrong-type'],
  ['layers[0].windowSize', 4, 'config-unknown-key'],
  ...notWholeAtLeast('layers[0].layerId', 0, false),
  ['layers[2].layerId', 1, 'config-duplicate-layer-id'],
  ['layers[1].layerId', 0, 'config-duplicate-layer-id'],
  ...notAPolicy('layers[1].reusePolicy'),
  ...notAPolicy('layers[2].reusePolicy'),
  ...notWholeAtLeast('layers[1].slidingWindowSize', 1, true),
  ...notWholeAtLeast('layers[1].numSinkTokens', 0, true),
  ['layers[0].numSinkTokens', 1, 'config-sinks-without-window'],
  ...notAName('layers[1].sparsityGroup', true),
  ['layers[2].slidingWindowSize', 4, 'config-unknown-key'],
  ['layers[2].numSinkTokens', 0, 'config-unknown-key'],
  ['layers[2].sparsityGroup', 's', 'config-unknown-key'],

  ...notAList('layers[0].buffers', false),
  ['layers[0].buffers', null, 'config-wrong-type'],
  ...notAnObject('layers[0].buffers[1]', false),
  ...notAName('layers[0].buffers[1].role', false),
  ['layers[0].buffers[1].role', 'key', 'config-duplicate-role'],
  ...notWholeAtLeast('layers[0].buffers[1].size', 0, false),
  ...notWholeAtLeast('layers[1].buffers[0].tokensPerBlockOverride', 1, true),
  ['layers[1].buffers[0].tokensPerBlockOverride', 3, 'config-override-not-a-divisor'],
  ['layers[1].buffers[0].tokensPerBlockOverride', 16, 'config-override-not-a-divisor'],
  ['layers[2].buffers[0].tokensPerBlockOverride', 8, 'config-override-on-ssm'],
  ...notAPolicy('layers[1].buffers[0].reusePolicy'),
  ...notAPolicy('layers[2].buffers[0].reusePolicy'),
  ...notAName('layers[1].buffers[0].coalescingGroup', true),
  ['layers[1].buffers[0].bytes', 4, 'config-unknown-key'],

  ...notAList('tiers', false),
  ['tiers', null, 'config-wrong-type'],
  ['tiers', [], 'config-no-tiers'],
  ...notAnObject('tiers[1]', false),
  ['tiers[1].tier', undefined, 'config-missing'],
  ['tiers[1].tier', 'gpu', 'config-unknown-value'],
  ['tiers[1].tier', 1, 'config-wrong-type'],
  ['tiers[0].tier', 'host', 'config-first-tier-not-device'],
  ['tiers[0].tier', 'disk', 'config-first-tier-not-device'],
  ['tiers[1].tier', 'device', 'config-device-tier-not-first'],
  ['tiers[0].path', 'pages', 'config-unknown-key'],
  ['tiers[1].path', 'pages', 'config-unknown-key'],
  ...notAName('tiers[2].path', true),
  ...notWholeAtLeast('tiers[0].quota', 1, false),
  ...notWholeAtLeast('tiers[2].quota', 1, false),

  ...notABoolean('enablePartialReuse'),
  ...notWholeAtLeast('reuseMatchBackoff', 0, true),
  ...notAnObject('swaScratchReuse', true),
  ['swaScratchReuse', true, 'config-wrong-type'],
  ['swaScratchReuse.maxRewind', 1, 'config-unknown-key'],
  ...notWholeAtLeast('swaScratchReuse.maxRewindLen', 0, true),
  ...notABoolean('commitMinSnapshot'),
  ['commitMinSnapshot', false, 'config-min-snapshot-required'],

  ['maxUtilForResume', null, 'config-wrong-type'],
  ['maxUtilForResume', '1', 'config-wrong-type'],
  ['maxUtilForResume', 0, 'config-out-of-range'],
  ['maxUtilForResume', -0.1, 'config-out-of-range'],
  ['maxUtilForResume', 1 + Number.EPSILON, 'config-out-of-range'],
  ['maxUtilForResume', 1.1, 'config-out-of-range'],
  ['maxUtilForResume', Number.NaN, 'config-out-of-range'],
  ['maxUtilForResume', Number.POSITIVE_INFINITY, 'config-out-of-range'],

  ...notAList('initialPoolRatio', true),
  ['initialPoolRatio', [], 'config-pool-ratio-length'],
  ['initialPoolRatio', [1, 2, 3], 'config-pool-ratio-length'],
  ['initialPoolRatio', [1, 2, 3, 4, 5], 'config-pool-ratio-length'],
  ['initialPoolRatio[3]', 0, 'config-out-of-range'],
  ['initialPoolRatio[3]', -1, 'config-out-of-range'],
  ['initialPoolRatio[3]', Number.NaN, 'config-out-of-range'],
  ['initialPoolRatio[3]', Number.POSITIVE_INFINITY, 'config-out-of-range'],
  ['initialPoolRatio[3]', '1', 'config-wrong-type'],
  ['initialPoolRatio[3]', null, 'config-wrong-type'],
  ['initialPoolRatio', [1e308, 1e308, 1, 1], 'config-out-of-range'],

  ...notAList('constraints', true),
  ['constraints', null, 'config-wrong-type'],
  ...notAnObject('constraints[0]', false),
  ...['constraints[0]', 'typicalStep'].flatMap((batch): Row[] => [
    [`${batch}.batchSize`, 1, 'config-unknown-key'],
    ...notWholeAtLeast(`${batch}.systemPromptLength`, 0, true),
    ...notAList(`${batch}.kvCaches`, false),
    ...notAnObject(`${batch}.kvCaches[0]`, false),
    [`${batch}.kvCaches[0].length`, 1, 'config-unknown-key'],
    ...notWholeAtLeast(`${batch}.kvCaches[0].capacity`, 0, false),
    ...notWholeAtLeast(`${batch}.kvCaches[0].historyLength`, 0, false),
    [`${batch}.kvCaches[0].historyLength`, 17, 'config-history-above-capacity'],
  ]),
  ...notAnObject('typicalStep', true),
  ['cacheTiers', [], 'config-unknown-key'],
];

describe('a config', () => {
  test('with every field is valid: the control case', () => {
    expect(faultsOf(full())).toEqual([]);
  });

  test.each(rows)('with %s = %o, and nothing else wrong, is refused: %s', (path, value, code) => {
    expect(faultsOf(withValue(path, value))).toEqual([{ code, path, value, message: expect.any(String) }]);
  });

  test.each([
    ['tokensPerBlock', 8],
    ['layers[0].layerId', MAX],
    ['layers[0].buffers[1].size', 1],
    ['layers[1].slidingWindowSize', 1],
    ['layers[1].slidingWindowSize', MAX],
    ['layers[1].numSinkTokens', 0],
    ['layers[1].numSinkTokens', 1000],
    ['layers[0].numSinkTokens', 0],
    ['layers[1].buffers[0].tokensPerBlockOverride', 1],
    ['layers[1].buffers[0].tokensPerBlockOverride', 8],
    ['tiers', [{ tier: 'device', quota: 1 }]],
    ['tiers[0].quota', 1],
    ['tiers[0].quota', MAX],
    ['tiers[2].path', undefined],
    ['reuseMatchBackoff', 0],
    ['reuseMatchBackoff', MAX],
    ['swaScratchReuse', {}],
    ['swaScratchReuse.maxRewindLen', 0],
    ['commitMinSnapshot', undefined],
    ['maxUtilForResume', Number.MIN_VALUE],
    ['maxUtilForResume', 1],
    ['initialPoolRatio', [0.1, 1e-9, 5, 1e300]],
    ['constraints', []],
    ['typicalStep.kvCaches', []],
    ['typicalStep.kvCaches[0].historyLength', 0],
    ['typicalStep.kvCaches[0].historyLength', 16],
    ['typicalStep.systemPromptLength', 0],
  ])('stands at the border with %s = %o', (path, value) => {
    expect(faultsOf(withValue(path, value))).toEqual([]);
  });

  test.each([
    [undefined, 'config-missing'],
    [null, 'config-wrong-type'],
    [[], 'config-wrong-type'],
    ['{}', 'config-wrong-type'],
  ])('that is %o is refused as a whole', (given, code) => {
    expect(faultsOf(given)).toMatchObject([{ code, path: '' }]);
  });

  test('without layers, or with layers that store nothing, is valid', () => {
    expect(faultsOf(input({ layers: [] }))).toEqual([]);
    expect(faultsOf(input({ layers: [], initialPoolRatio: [] }))).toEqual([]);
    expect(faultsOf(input({ layers: [attention(0, { buffers: [] }), ssm(1, { buffers: [] })] }))).toEqual([]);
  });

  test('checks a layer without buffers, and a buffer of size 0, like any other', () => {
    expect(faultsOf(input({ layers: [attention(0, { buffers: [], slidingWindowSize: 0 })] }))).toMatchObject([
      { path: 'layers[0].slidingWindowSize' },
    ]);
    expect(faultsOf(input({ layers: [ssm(0, { buffers: [] }), ssm(0, { buffers: [] })] }))).toMatchObject([
      { code: 'config-duplicate-layer-id', path: 'layers[1].layerId' },
    ]);
    const absent = [buffer('key', { size: 0, tokensPerBlockOverride: 3 }), buffer('key', { size: 0 }), buffer('key')];
    expect(faultsOf(input({ layers: [attention(0, { buffers: absent })] }))).toMatchObject([
      { code: 'config-override-not-a-divisor', path: 'layers[0].buffers[0].tokensPerBlockOverride' },
      { code: 'config-duplicate-role', path: 'layers[0].buffers[2].role' },
    ]);
    const state = [buffer('ssm_state', { size: 0, tokensPerBlockOverride: 4 })];
    expect(faultsOf(input({ layers: [ssm(0, { buffers: state })] }))).toMatchObject([{ code: 'config-override-on-ssm' }]);
  });

  test('does not tell layer 0 from layer -0', () => {
    expect(faultsOf(input({ layers: [attention(0), attention(-0)] }))).toMatchObject([{ code: 'config-duplicate-layer-id' }]);
  });

  test('may use a role again in another layer', () => {
    expect(faultsOf(input({ layers: [attention(0), attention(1)] }))).toEqual([]);
  });

  test('whose block is too large to count in bytes is refused, just below it is not', () => {
    const twoOf = (size: number) => [
      attention(0, { buffers: [buffer('key', { size })] }),
      ssm(1, { buffers: [buffer('ssm_state', { size: 1 })] }),
    ];
    expect(faultsOf(input({ layers: twoOf(MAX - 1) }))).toEqual([]);
    expect(faultsOf(input({ layers: twoOf(MAX) }))).toMatchObject([{ code: 'config-out-of-range', path: 'layers' }]);
    const expanded = (size: number) => [attention(0, { buffers: [buffer('key', { size, tokensPerBlockOverride: 1 })] })];
    expect(faultsOf(input({ layers: expanded(2 ** 51 - 1) }))).toEqual([]);
    expect(faultsOf(input({ layers: expanded(2 ** 51) }))).toMatchObject([{ code: 'config-out-of-range', path: 'layers' }]);
  });

  test('does not blame a field for the fault of another', () => {
    expect(faultsOf(withValue('tokensPerBlock', 0)).map((fault) => fault.path)).toEqual(['tokensPerBlock']);
    const layers = [attention(0, { slidingWindowSize: 0, numSinkTokens: 4 })];
    expect(faultsOf(input({ layers })).map((fault) => fault.path)).toEqual(['layers[0].slidingWindowSize']);
    expect(faultsOf(input({ layers, initialPoolRatio: [1, 2] })).map((fault) => fault.path)).toEqual([
      'layers[0].slidingWindowSize',
    ]);
  });

  test('names a field that no path can name bare in brackets', () => {
    expect(faultsOf({ ...input(), 'tokens.per.block': 4 })).toMatchObject([{ path: '["tokens.per.block"]' }]);
    expect(faultsOf(input({ layers: [{ ...attention(0), 'sliding-window': 4 } as never] }))).toMatchObject([
      { path: 'layers[0]["sliding-window"]' },
    ]);
  });
});

describe('the error', () => {
  const faulty = {
    tokensPerBlock: 0,
    layers: [attention(3, { numSinkTokens: 4 }), attention(3), { type: 'ssm', layerId: 1, buffers: [{ role: 'x', size: -4 }] }],
    tiers: [],
    maxUtilForResume: 2,
    typo: 1,
  };

  test('tells all faults together, in the order of the check', () => {
    expect(faultsOf(faulty).map(({ code, path }) => [code, path])).toEqual([
      ['config-unknown-key', 'typo'],
      ['config-out-of-range', 'tokensPerBlock'],
      ['config-sinks-without-window', 'layers[0].numSinkTokens'],
      ['config-duplicate-layer-id', 'layers[1].layerId'],
      ['config-out-of-range', 'layers[2].buffers[0].size'],
      ['config-no-tiers', 'tiers'],
      ['config-out-of-range', 'maxUtilForResume'],
    ]);
  });

  test('carries code, path and value of the first fault, and is a BufferwiseError by mark', () => {
    const error = caught(() => defineCacheConfig(withValue('layers[1].buffers[1].size', -4)));
    expect(error).toMatchObject({
      name: 'ConfigError',
      code: 'config-out-of-range',
      path: 'layers[1].buffers[1].size',
      value: -4,
    });
    expect(error.message).toContain('layers[1].buffers[1].size');
    expect(error.message).toContain('-4');
    expect(BufferwiseError.isInstance(error)).toBe(true);
  });

  test('has faults that cannot be changed', () => {
    const { faults } = caught(() => defineCacheConfig(faulty as never));
    expect(Object.isFrozen(faults) && faults.every(Object.isFrozen)).toBe(true);
  });

  test('lists the first twenty faults in its message and counts the rest', () => {
    const layers = Array.from({ length: 25 }, (_, layerId) => attention(layerId, { slidingWindowSize: 0 }));
    const error = caught(() => defineCacheConfig(input({ layers })));
    expect(error.faults).toHaveLength(25);
    expect(error.message).toContain('layers[19].slidingWindowSize');
    expect(error.message).not.toContain('layers[20].slidingWindowSize');
    expect(error.message).toContain('5 more');
  });

  test('shortens long values', () => {
    const error = caught(() => defineCacheConfig(withValue('layers[0].type', 'x'.repeat(10_000))));
    expect(error.message.length).toBeLessThan(300);
  });

  test.each([
    ['maxUtilForResume', 1.1, 'maxUtilForResume must be in (0, 1]'],
    ['initialPoolRatio', [1], 'length'],
    ['initialPoolRatio[0]', 0, 'positive'],
  ])('names the rule that %s = %o breaks', (path, value, words) => {
    expect(caught(() => defineCacheConfig(withValue(path, value))).message).toContain(words);
  });
});

function caught(act: () => unknown): ConfigError {
  try {
    act();
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}
