import { describe, expect, test } from 'vitest';
import { StackPolicy } from '../../test/support/stack-policy.ts';
import { pageAt, rowOf } from '../page/page-table.ts';
import { GuardedPolicy } from './guarded-policy.ts';

/** A guard with the pages of rows 1, 2 and 3 in its queue, over a stack that does some things in its own way. */
function guarded(ways: object = {}): GuardedPolicy {
  const policy = Object.create(new StackPolicy(), Object.getOwnPropertyDescriptors(ways));
  const guard = new GuardedPolicy(policy);
  for (const page of [1, 2, 3]) guard.push(pageAt(page));
  return guard;
}

test('a policy that does well is asked everything and obeyed', () => {
  const asked: unknown[] = [];
  const guard = guarded({
    reused: (page: number) => asked.push(page),
    wanted: (group: number, hash: number) => asked.push(group, hash) > 0,
    becameLeaf: (page: number) => asked.push(page),
  });
  expect([rowOf(guard.first()), guard.count, [...guard].map(rowOf)]).toEqual([3, 3, [1, 2, 3]]);
  guard.remove(pageAt(3));
  guard.reused(pageAt(3));
  guard.becameLeaf(pageAt(2));
  expect([guard.wanted(0, 77), rowOf(guard.first()), guard.count]).toEqual([true, 2, 2]);
  expect(asked).toEqual([3, 2, 0, 77]);
  expect(() => guard.check()).not.toThrow();
});

test('what a policy need not answer is not asked, and an empty queue has no first', () => {
  const guard = guarded({ first: () => 3 });
  guard.reused(pageAt(9));
  guard.becameLeaf(pageAt(1));
  expect(guard.wanted(0, 1)).toBe(false);
  for (const page of [1, 2, 3]) guard.remove(pageAt(page));
  expect(guard.first()).toBe(-1);
  expect(() => guard.check()).not.toThrow();
});

describe('a policy that fails', () => {
  const boom = () => {
    throw new Error('boom');
  };
  test.each([
    ['names a page of another queue', { first: () => 9 }, 'names 9, which is not in its queue, though 3 may go'],
    ['names nothing', { first: () => undefined }, 'names undefined, which is not in its queue, though 3 may go'],
    ['names no page', { first: () => -1 }, 'names no page though 3 may go'],
    ['throws when asked', { first: boom }, 'throws Error: boom'],
    ['throws when told', { push: boom }, 'throws Error: boom'],
    ['throws when told of what leaves', { remove: boom }, 'throws Error: boom'],
    ['cannot count', { count: 7 }, 'counts 7 of 3 pages'],
  ])('%s: pages go in the order in which they came, and whoever checks is told, again and again', (_, ways, message) => {
    const guard = guarded(ways);
    expect(rowOf(guard.first())).toBe('first' in ways || 'push' in ways ? 1 : 3);
    guard.remove(pageAt(1));
    guard.push(pageAt(1));
    expect(() => guard.check()).toThrow(message);
    expect([rowOf(guard.first()), guard.count, [...guard].map(rowOf).sort()]).toEqual([2, 3, [1, 2, 3]]);
    expect(() => guard.check()).toThrow(message);
  });
});
