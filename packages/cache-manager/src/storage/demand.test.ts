import { describe, expect, test } from 'vitest';
import { full, recurrent, windowed } from '../../test/support/stage.ts';
import { storeOf } from '../../test/support/store.ts';
import { Demand } from './demand.ts';

/** Two pool groups of 10 slots, 6 of the first held, 1 evictable. */
function tenSlots() {
  const { storage, evicted, evictor } = storeOf([full(), windowed(8)], { slots: [10, 10] });
  for (let i = 0; i < 6; i++) storage.createHeld(0, 35);
  const page = storage.createHeld(0, 35);
  storage.pages.block[page] = 1;
  storage.release(page);
  return { storage, evicted, demand: new Demand(storage, evictor) };
}

describe('a demand', () => {
  test('fits as long as free and evictable slots cover it, and not one more', () => {
    const { demand } = tenSlots();
    demand.want(0, 4);
    expect(demand.fits()).toBe(true);
    demand.want(0, 1);
    expect(demand.fits()).toBe(false);
  });

  test('is helped by what is given back', () => {
    const { demand } = tenSlots();
    demand.want(0, 6);
    demand.giveBack(0, 1);
    expect(demand.fits()).toBe(false);
    demand.giveBack(0, 1);
    expect(demand.fits()).toBe(true);
  });

  test('must fit in every pool group', () => {
    const { demand } = tenSlots();
    demand.want(1, 11);
    expect(demand.fits()).toBe(false);
  });

  test('forgets the last step', () => {
    const { demand } = tenSlots();
    demand.want(0, 11);
    demand.reset();
    expect(demand.fits()).toBe(true);
    demand.makeRoom();
  });

  test('makes exactly the room it wants', () => {
    const { storage, evicted, demand } = tenSlots();
    demand.want(0, 4);
    demand.makeRoom();
    expect([storage.free(0), evicted.length]).toEqual([4, 1]);
  });
});

describe('a store', () => {
  test.each([
    [0.6, false],
    [0.59, true],
  ])('with 6 of 10 slots in use is beyond %d of it: %s', (maxUtil, saturated) => {
    expect(tenSlots().demand.isSaturated(maxUtil)).toBe(saturated);
  });

  test('counts what is given back as free', () => {
    const { demand } = tenSlots();
    demand.giveBack(0, 1);
    expect(demand.isSaturated(0.5)).toBe(false);
  });

  test('whose state alone is all in use is not', () => {
    const { storage, evictor } = storeOf([recurrent(), full()], { slots: 2 });
    storage.createHeld(0, 35);
    storage.createHeld(0, 35);
    expect(new Demand(storage, evictor).isSaturated(0.5)).toBe(false);
  });
});
