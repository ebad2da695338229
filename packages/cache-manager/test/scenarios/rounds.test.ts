import { expect, test } from 'vitest';
import type { Player } from '../support/player.ts';
import { full, GRAIN_BYTES, type LayerShape, model, Stage, seq, windowed } from '../support/stage.ts';

/** Tokens that no other text begins with. */
const text = (name: number, count: number) => seq(count).map((token) => name * 1000 + token);

/** Groups of eight slots to a grain, with two grains each and a host, between which two pages may be under way. */
function narrow(layers: readonly LayerShape[]): Stage {
  const config = model(layers, { slots: 8, hostSlots: 32, maxUtilForResume: 1 });
  const tiers = [{ tier: 'device' as const, quota: 2 * layers.length * GRAIN_BYTES }, ...config.tiers.slice(1)];
  return new Stage({ ...config, tiers }, undefined, { stagingBytes: 1 });
}

async function suspended(stage: Stage, name: number, count: number): Promise<Player> {
  const player = await stage.start();
  expect(player.step(text(name, count))).toBe(true);
  player.suspend();
  return player;
}

test('a device becomes smaller though one page of each group has to leave, and there is no budget for all of these at once', async () => {
  const stage = narrow([full('private'), windowed(8, 'private'), windowed(12, 'private')]);
  const player = await suspended(stage, 1, 36);
  expect([0, 1, 2].map((group) => stage.slots(group).total)).toEqual([16, 16, 16]);
  expect(await stage.manager.resizeTier(0, 3 * GRAIN_BYTES)).toBe(true);
  expect([0, 1, 2].map((group) => stage.traffic(group).offloaded)).toEqual([1, 1, 1]);
  expect(await stage.manager.resizeTier(0, 6 * GRAIN_BYTES)).toBe(true);
  expect(await player.resume()).toBe(true);
  await stage.finish();
});

test('a request comes back to a device that others fill, though no more than two of their pages may leave at a time', async () => {
  const stage = narrow([full('private')]);
  const first = await stage.start();
  expect(first.step(text(1, 60)) && first.settle()).toBe(true);
  first.suspend();
  const second = await stage.start();
  for (let count = 4; count <= 60; count += 4) {
    expect(second.step(text(2, count).slice(second.numComputed)) && second.settle()).toBe(true);
    await stage.manager.settled();
  }
  second.suspend();
  expect(stage.used(0)[1]).toBeGreaterThan(0);
  for (const player of [first, second, first]) {
    expect(await player.resume()).toBe(true);
    player.verifyAll();
    player.suspend();
  }
  await stage.finish();
});

test('a newcomer finds room on a device that others fill, though no more than two of their pages may leave at a time', async () => {
  const stage = narrow([full()]);
  await stage.donate(text(9, 14), [14]);
  const reader = stage.open([...text(9, 14), 5]);
  const first = await stage.start();
  expect(first.step(text(1, 44)) && first.settle()).toBe(true);
  first.suspend();
  expect(await reader.resume()).toBe(true);
  await stage.finish();
});
