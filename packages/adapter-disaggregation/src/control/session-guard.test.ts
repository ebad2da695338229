import { describe, expect, test } from 'vitest';
import { SessionGuard } from './session-guard.ts';

const mark = (number: number, session = 's', startedMs = 1, from = 'w') => ({ from, session, startedMs, number });

describe('a session guard', () => {
  test('lets each message through once, in whatever order they come', () => {
    const guard = new SessionGuard();
    const passed = new Set<number>();
    let state = 1;
    for (let i = 0; i < 20_000; i++) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      const number = Math.max(0, (i >> 2) + ((state >>> 8) % 600) - 300);
      const isNew = guard.isNew(mark(number));
      expect(isNew, `${number}`).toBe(!passed.has(number));
      passed.add(number);
    }
  });

  test('refuses what comes later than so many others, which may have come before', () => {
    const guard = new SessionGuard();
    expect(guard.isNew(mark(5000))).toBe(true);
    expect(guard.isNew(mark(5000 - 1023))).toBe(true);
    expect(guard.isNew(mark(5000 - 1024))).toBe(false);
    expect(guard.isNew(mark(2 ** 40))).toBe(true);
    expect(guard.isNew(mark(2 ** 40))).toBe(false);
    expect(guard.isNew(mark(5000))).toBe(false);
  });

  test('refuses what an earlier run of a sender said, and one that claims to have begun as early', () => {
    const guard = new SessionGuard();
    expect(guard.isNew(mark(7, 'old', 10))).toBe(true);
    expect(guard.isNew(mark(0, 'new', 11))).toBe(true);
    expect(guard.isNew(mark(8, 'old', 10))).toBe(false);
    expect(guard.isNew(mark(9, 'other', 11))).toBe(false);
    expect(guard.isNew(mark(1, 'new', 11))).toBe(true);
    expect(guard.isNew(mark(8, 'old', 10, 'another'))).toBe(true);
  });
});
