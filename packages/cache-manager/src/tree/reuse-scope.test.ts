import { StateError } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import { type ReuseScope, scopeKey, scopeParts } from './reuse-scope.ts';

describe('two scopes', () => {
  const different: (ReuseScope | undefined)[] = [
    undefined,
    { loraId: 7 },
    { salt: 7 },
    { loraId: 7, salt: 11 },
    { loraId: 11, salt: 7 },
    { loraId: 711 },
    { loraId: 0 },
    { salt: 0 },
    { loraId: 0, salt: 0 },
    { loraId: 2n ** 64n - 1n },
  ];

  test('that differ in a value, or in which value it is, are apart', () => {
    expect(new Set(different.map(scopeKey)).size).toBe(different.length);
  });

  test.each<[string, ReuseScope | undefined, ReuseScope | undefined]>([
    ['an empty one and none', {}, undefined],
    ['absent parts and none', { loraId: undefined, salt: undefined }, undefined],
    ['7 and 7n', { loraId: 7, salt: 7n }, { loraId: 7n, salt: 7 }],
    ['0 and 0n', { salt: 0 }, { salt: 0n }],
    ['minus zero and zero', { salt: -0 }, { salt: 0 }],
  ])('%s are the same', (_, a, b) => {
    expect(scopeKey(a)).toBe(scopeKey(b));
  });
});

test.each<[string, ReuseScope]>([
  ['a negative number', { salt: -1 }],
  ['a negative bigint', { salt: -1n }],
  ['a fraction', { loraId: 0.5 }],
  ['NaN', { loraId: Number.NaN }],
  ['a number beyond 2^53', { loraId: 2 ** 53 }],
  ['a bigint of 65 bits', { salt: 2n ** 64n }],
  ['a text', { salt: '7' as unknown as number }],
])('%s is no part of a scope', (_, scope) => {
  expect(() => scopeKey(scope)).toThrow(StateError);
});

test.each<[ReuseScope | undefined, string | null, string | null]>([
  [undefined, null, null],
  [{ loraId: 0 }, '0', null],
  [{ salt: 2n ** 64n - 1n }, null, '18446744073709551615'],
  [{ loraId: 7, salt: 11n }, '7', '11'],
])('the parts of %o can be read from its text', (scope, loraId, salt) => {
  expect(scopeParts(scopeKey(scope))).toEqual({ loraId, salt });
});
