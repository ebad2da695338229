import { expect, it } from 'vitest';
import { checkStated } from './check-stated.ts';
import { statedValue, withStatedValues } from './stated-values.ts';

it.for([
  ['100: compute the last 20', 100],
  ['true', true],
  ['-1: there is no page', -1],
  ["'a word'; and more", 'a word'],
  ['{ begin: 0, end: 27 }', { begin: 0, end: 27 }],
  ["[{ reason: 'none', groupId: null }, 1_000]", [{ reason: 'none', groupId: null }, 1000]],
] as const)('the comment "%s" states a value', ([comment, value]) => {
  expect(statedValue(comment)).toEqual({ value, partial: false });
});

it.for(['9 tokens go through the model', 'what each group supplies', '{ bytes, gain }', 'slots 0, 1, 2', ''])(
  'the comment "%s" states none',
  (comment) => {
    expect(statedValue(comment)).toBeUndefined();
  },
);

it('a comment that leaves something out is held to the rest', () => {
  const stated = statedValue("{ tokens: 15, reason: 'length', … }");
  expect(stated).toEqual({ value: { tokens: 15, reason: 'length' }, partial: true });
  checkStated({ tokens: 15, reason: 'length', more: 1 }, stated!, 'here');
  expect(() => checkStated({ tokens: 14, reason: 'length' }, stated!, 'here')).toThrow('here');
});

it('a wrong comment is found, with its place', () => {
  const { source, count } = withStatedValues('const a = 1;\na + 1; // 3\n', 'check');
  expect(source).toBe('const a = 1;\ncheck(a + 1, {"value":3,"partial":false}, 2); // 3\n');
  expect(count).toBe(1);
  expect(() => checkStated(2, { value: 3, partial: false }, 'README.md:2')).toThrow('README.md:2');
});

it('numbers in typed arrays are numbers', () => {
  checkStated(Int32Array.of(2, 5), { value: [2, 5], partial: false }, 'here');
});
