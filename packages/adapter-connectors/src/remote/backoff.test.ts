import { expect, test } from 'vitest';
import { Backoff } from './backoff.ts';

test('the first try is at once, later ones wait twice as long each, up to the limit', () => {
  const backoff = new Backoff({ minMs: 100, maxMs: 1000 });
  expect(backoff.next()).toBe(0);
  for (const most of [100, 200, 400, 800, 1000, 1000]) {
    const wait = backoff.next();
    expect(wait).toBeGreaterThanOrEqual(most / 2);
    expect(wait).toBeLessThanOrEqual(most);
  }
  backoff.reset();
  expect(backoff.next()).toBe(0);
});
