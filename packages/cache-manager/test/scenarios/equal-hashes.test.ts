import { expect, test, vi } from 'vitest';
import { full, model, recurrent, Stage, seq } from '../support/stage.ts';

// Failure B56: whoever makes two texts with one hash gets the pages of somebody else.
vi.mock('../../src/tree/token-hash.ts', () => ({ hashTokens: () => 7, chainHash: () => 7, hashText: () => 7 }));

test('where all tokens have one hash, the tokens decide: nothing is mixed up, found or lost', async () => {
  const stage = new Stage(model([full(), recurrent()], { slots: [1200, 600] }));
  const prompt = (name: number) => [name, 1, 2, 3, 4, 5, name, 7];
  const COUNT = 250;
  for (let name = 0; name < COUNT; name++) await stage.donate(prompt(name), [4, 8]);
  for (let name = 0; name < COUNT; name++) expect(stage.probe(prompt(name))).toBe(8);
  expect([stage.probe([COUNT, 1, 2, 3]), stage.probe(seq(3).reverse())]).toEqual([0, 0]);
  for (let name = 0; name < COUNT; name += 2) stage.drop(0, prompt(name), 0);
  for (let name = 0; name < COUNT; name++) expect(stage.probe(prompt(name))).toBe(name % 2 === 0 ? 0 : 8);
  for (const name of [1, 77, COUNT - 1]) {
    const reader = await stage.start([...prompt(name), 9]);
    expect(reader.extend([9])).toBe(true);
  }
  await stage.finish();
});
