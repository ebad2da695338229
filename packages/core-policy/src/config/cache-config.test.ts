import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { attention, buffer, input, ssm } from '../../test/builders.ts';
import { ConfigError } from '../errors/config-error.ts';
import { defineCacheConfig } from './cache-config.ts';

describe('a checked config', () => {
  test('has every default filled in', () => {
    expect(defineCacheConfig(input({ layers: [attention(3, { buffers: [buffer('key')] })] }))).toEqual({
      tokensPerBlock: 4,
      layers: [
        {
          type: 'attention',
          layerId: 3,
          buffers: [{ role: 'key', size: 4096, reusePolicy: 'required' }],
          numSinkTokens: 0,
          reusePolicy: 'required',
        },
      ],
      tiers: [{ tier: 'device', quota: 4 << 20 }],
      enablePartialReuse: true,
      reuseMatchBackoff: 0,
      swaScratchReuse: null,
      commitMinSnapshot: false,
      maxUtilForResume: 0.97,
      initialPoolRatio: null,
      constraints: [],
      typicalStep: null,
    });
  });

  test('keeps everything that was said', () => {
    const layer = {
      type: 'attention' as const,
      layerId: 7,
      buffers: [{ role: 'key', size: 64, tokensPerBlockOverride: 2, reusePolicy: 'private' as const, coalescingGroup: 'a' }],
      slidingWindowSize: 8,
      numSinkTokens: 5,
      sparsityGroup: 's',
      reusePolicy: 'optional' as const,
    };
    const said = {
      tokensPerBlock: 4,
      layers: [layer],
      tiers: [
        { tier: 'device' as const, quota: 1 },
        { tier: 'host' as const, quota: 2 },
        { tier: 'disk' as const, quota: 3, path: 'pages' },
        { tier: 'disk' as const, quota: 4 },
      ],
      enablePartialReuse: false,
      reuseMatchBackoff: 1,
      swaScratchReuse: { maxRewindLen: 2 },
      commitMinSnapshot: true,
      maxUtilForResume: 1,
      initialPoolRatio: [3],
      constraints: [{ kvCaches: [{ capacity: 9, historyLength: 9 }], systemPromptLength: 4 }],
      typicalStep: { kvCaches: [], systemPromptLength: 0 },
    };
    expect(defineCacheConfig(said)).toEqual(said);
  });

  test('fills in what a batch and scratch reuse leave out', () => {
    const config = defineCacheConfig(
      input({
        swaScratchReuse: {},
        typicalStep: { kvCaches: [] },
        constraints: [{ kvCaches: [{ capacity: 1, historyLength: 0 }] }],
      }),
    );
    expect(config.swaScratchReuse).toEqual({ maxRewindLen: 0 });
    expect(config.typicalStep).toEqual({ kvCaches: [], systemPromptLength: 0 });
    expect(config.constraints).toEqual([{ kvCaches: [{ capacity: 1, historyLength: 0 }], systemPromptLength: 0 }]);
  });

  test.each([
    ['no SSM layer', [attention(0)], false],
    ['an SSM layer', [attention(0), ssm(1)], true],
    ['an SSM layer without buffers', [attention(0), ssm(1, { buffers: [] })], false],
    ['an SSM layer with absent buffers only', [attention(0), ssm(1, { buffers: [buffer('ssm_state', { size: 0 })] })], false],
  ])('with %s takes minimal snapshots by default: %#', (_, layers, expected) => {
    expect(defineCacheConfig(input({ layers })).commitMinSnapshot).toBe(expected);
  });

  test('may keep whole commits when its SSM layers have no buffer here', () => {
    const layers = [ssm(1, { buffers: [buffer('ssm_state', { size: 0 })] })];
    expect(defineCacheConfig(input({ layers, commitMinSnapshot: false })).commitMinSnapshot).toBe(false);
  });

  test('treats an undefined field as left out, and null as none where none is a value', () => {
    const sparse = input({ swaScratchReuse: null, initialPoolRatio: null, typicalStep: null, commitMinSnapshot: undefined });
    expect(defineCacheConfig({ ...sparse, constraints: undefined, maxUtilForResume: undefined })).toEqual(
      defineCacheConfig(input()),
    );
  });

  test('cannot be changed at any depth', () => {
    const config = defineCacheConfig(
      input({
        layers: [attention(0, { slidingWindowSize: 8 }), ssm(1)],
        swaScratchReuse: {},
        initialPoolRatio: [1, 2],
        constraints: [{ kvCaches: [{ capacity: 1, historyLength: 1 }] }],
        typicalStep: { kvCaches: [{ capacity: 1, historyLength: 1 }] },
      }),
    );
    expectDeeplyFrozen(config);
  });

  test('is a copy: neither the input nor what it holds is kept or changed', () => {
    const given = input({ layers: [attention(0), ssm(1)] });
    const before = structuredClone(given);
    const config = defineCacheConfig(given);
    expect(given).toEqual(before);
    (given.layers[0].buffers as unknown[]).pop();
    (given.tiers[0] as { quota: number }).quota = 1;
    expect(config.layers[0].buffers).toHaveLength(2);
    expect(config.tiers[0].quota).toBe(4 << 20);
  });

  test('is an input that gives an equal config', () => {
    const config = defineCacheConfig(
      input({ layers: [attention(0, { slidingWindowSize: 8, reusePolicy: 'optional' }), ssm(1)], swaScratchReuse: {} }),
    );
    expect(defineCacheConfig(config)).toEqual(config);
    expect(defineCacheConfig(structuredClone(config))).toEqual(config);
  });

  test('writes a negative zero as zero', () => {
    const config = defineCacheConfig(input({ layers: [attention(-0)], reuseMatchBackoff: -0 }));
    expect(Object.is(config.layers[0].layerId, 0)).toBe(true);
    expect(Object.is(config.reuseMatchBackoff, 0)).toBe(true);
  });
});

describe('a hostile input', () => {
  test('is read once: a field that changes its answer cannot pass the check with one value and stay with another', () => {
    let reads = 0;
    const layer = {
      ...attention(0),
      get slidingWindowSize() {
        reads++;
        return reads === 1 ? 8 : -1;
      },
    };
    expect(defineCacheConfig(input({ layers: [layer] })).layers[0]).toMatchObject({ slidingWindowSize: 8 });
    expect(reads).toBe(1);
  });

  test('says nothing through its prototype', () => {
    const inherited = Object.create(input()) as ReturnType<typeof input>;
    expect(() => defineCacheConfig(inherited)).toThrow(ConfigError);
    const layer = Object.assign(Object.create({ slidingWindowSize: -1, surprise: true }), attention(0));
    expect(defineCacheConfig(input({ layers: [layer] })).layers[0]).not.toHaveProperty('slidingWindowSize');
  });

  test('cannot smuggle in a field by the name of the prototype', () => {
    const parsed = JSON.parse('{"__proto__": {"tokensPerBlock": 4}}');
    expect(catchConfigError(() => defineCacheConfig(parsed))?.faults).toMatchObject([
      { code: 'config-unknown-key', path: '__proto__' },
      { code: 'config-missing', path: 'tokensPerBlock' },
      { code: 'config-missing', path: 'layers' },
      { code: 'config-missing', path: 'tiers' },
    ]);
  });

  test('with a hole in an array is told where the hole is', () => {
    const layers = [attention(0)];
    layers[2] = attention(2);
    expect(catchConfigError(() => defineCacheConfig(input({ layers })))).toMatchObject({
      code: 'config-missing',
      path: 'layers[1]',
    });
  });

  test('of any shape gives a config or a ConfigError with a path into the input, and nothing else', () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withNullPrototype: true, withSparseArray: true }), (anything) => {
        const error = catchConfigError(() => defineCacheConfig(anything as never));
        expect(error?.faults.length).toBeGreaterThan(0);
      }),
    );
    const broken = fc.record({
      tokensPerBlock: fc.oneof(fc.constant(4), fc.anything()),
      layers: fc.oneof(fc.constant([attention(0)]), fc.array(fc.oneof(fc.constant(ssm(1)), fc.anything())), fc.anything()),
      tiers: fc.oneof(fc.constant([{ tier: 'device', quota: 1 }]), fc.anything()),
      commitMinSnapshot: fc.anything(),
      initialPoolRatio: fc.anything(),
      typicalStep: fc.anything(),
    });
    fc.assert(
      fc.property(broken, (candidate) => {
        const error = catchConfigError(() => expectDeeplyFrozen(defineCacheConfig(candidate as never)));
        for (const { path, value } of error?.faults ?? []) {
          expect(lookUp(candidate, path, value)).toEqual(value);
        }
      }),
    );
  });
});

function catchConfigError(act: () => unknown): ConfigError | undefined {
  try {
    act();
    return undefined;
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}

function expectDeeplyFrozen(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  expect(Object.isFrozen(value)).toBe(true);
  for (const child of Object.values(value)) expectDeeplyFrozen(child);
}

/** The value at a path of an input; `computed` where the path leads to a sum, not to a value. */
function lookUp(root: unknown, path: string, computed: unknown): unknown {
  if (path === 'layers' && typeof computed === 'number') return computed;
  let value = root;
  for (const [step] of path.matchAll(/\["(?:[^"\\]|\\.)*"\]|[^.[\]]+/g)) {
    const key = step.startsWith('[') ? JSON.parse(step)[0] : step;
    value = Object.getOwnPropertyDescriptor(value, key)?.value;
  }
  return value;
}
