import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fullAttention, type Lifecycle, lifecycleId, lifecycleKey, sameLifecycle, slidingWindow, ssmState } from './lifecycle.ts';

const base = slidingWindow(4, { numSinkBlocks: 1, sparsityGroup: 's', policy: 'optional' });

describe('two lifecycles', () => {
  test.each<[string, Lifecycle, Lifecycle]>([
    ['window', base, { ...base, windowSize: 5 }],
    ['sinks', base, { ...base, numSinkBlocks: 2 }],
    ['sparsity group', base, { ...base, sparsityGroup: 't' }],
    ['presence of a sparsity group', base, { ...base, sparsityGroup: null }],
    ['policy', base, { ...base, policy: 'required' }],
    ['kind', fullAttention(), ssmState()],
    ['policy, of recurrent state', ssmState(), ssmState('private')],
    ['presence of a window', slidingWindow(4), fullAttention()],
    ['spelling of no sparsity group', fullAttention(), fullAttention({ sparsityGroup: 'null' })],
    ['empty sparsity group', fullAttention(), fullAttention({ sparsityGroup: '' })],
    ['sparsity group that looks like sinks', slidingWindow(4, { sparsityGroup: '1' }), slidingWindow(4, { numSinkBlocks: 1 })],
  ])('that differ in %s are not the same', (_, a, b) => {
    expect(sameLifecycle(a, b)).toBe(false);
    expect(sameLifecycle(b, a)).toBe(false);
    expect(lifecycleKey(a)).not.toBe(lifecycleKey(b));
  });

  test('are the same when every field is', () => {
    expect(sameLifecycle(base, { ...base })).toBe(true);
    expect(sameLifecycle(ssmState('private'), { kind: 'ssm', policy: 'private' })).toBe(true);
  });

  test('have equal keys exactly when they are the same', () => {
    fc.assert(fc.property(anyLifecycle, anyLifecycle, (a, b) => (lifecycleKey(a) === lifecycleKey(b)) === sameLifecycle(a, b)));
    fc.assert(
      fc.property(anyLifecycle, (a) => sameLifecycle(a, structuredClone(a)) && lifecycleKey(a) === lifecycleKey({ ...a })),
    );
  });
});

describe('a lifecycle id', () => {
  test.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])('is not made of %d', (value) => {
    expect(() => lifecycleId(value)).toThrow(expect.objectContaining({ code: 'bad-index' }));
  });

  test.each([0, 1, 2 ** 53 - 1])('is made of %d', (value) => {
    expect(lifecycleId(value)).toBe(value);
  });
});

const policy = fc.constantFrom('required' as const, 'optional' as const, 'private' as const);
const anyLifecycle: fc.Arbitrary<Lifecycle> = fc.oneof(
  fc.record({ kind: fc.constant('ssm' as const), policy }),
  fc.record({
    kind: fc.constant('attention' as const),
    windowSize: fc.constantFrom(null, 1, 4),
    numSinkBlocks: fc.constantFrom(0, 1),
    sparsityGroup: fc.constantFrom(null, '', '1', 'null', ' 1', 's'),
    policy,
  }),
);
