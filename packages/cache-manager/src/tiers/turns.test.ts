import { expect, test } from 'vitest';
import { Turns } from './turns.ts';

test('everybody gets a turn, one after the other, whatever becomes of the one before', async () => {
  const turns = new Turns();
  const log: string[] = [];
  const work = (name: string, fails = false) =>
    turns.take(async () => {
      log.push(`${name} begins`);
      await Promise.resolve();
      log.push(`${name} ends`);
      if (fails) throw new Error(name);
      return name;
    });
  const [a, b, c] = [work('a'), work('b', true), work('c')];
  expect(turns.any).toBe(true);
  await expect(b).rejects.toThrow('b');
  expect(await Promise.all([a, c])).toEqual(['a', 'c']);
  await turns.ended();
  expect(log).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
  expect(turns.any).toBe(false);
});
