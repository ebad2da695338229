import { describe, expect, test } from 'vitest';
import { full, recurrent, windowed } from '../../test/support/stage.ts';
import { StampedDevice } from '../../test/support/stamped-device.ts';
import { storeOf } from '../../test/support/store.ts';
import type { PoolSpec } from '../ports/page-device.ts';
import { HostPageDevice } from '../tiers/host-page-device.ts';
import type { StorageManager } from './storage-manager.ts';

/** A page that the tree lists and nobody holds. */
function listed(storage: StorageManager, priority = 35): number {
  const page = storage.createHeld(0, priority);
  storage.pages.block[page] = 1;
  storage.release(page);
  return page;
}

const counts = (storage: StorageManager, poolGroup = 0) => [
  storage.free(poolGroup),
  storage.evictable(poolGroup),
  storage.unavailable(poolGroup),
];

describe('a page', () => {
  test('has a slot of its own as long as somebody holds it', () => {
    const { storage } = storeOf([full()], { slots: 3 });
    const pages = [0, 1, 2].map(() => storage.createHeld(0, 35));
    expect(new Set(pages.map((page) => storage.pages.slot[page])).size).toBe(3);
    expect(counts(storage)).toEqual([0, 0, 3]);
  });

  test('that nobody lists is freed when the last holder lets go, and not before', () => {
    const { storage } = storeOf([full()], { slots: 3 });
    const page = storage.createHeld(0, 35);
    storage.hold(page);
    storage.release(page);
    expect([storage.pages.isLive(page), ...counts(storage)]).toEqual([true, 2, 0, 1]);
    storage.release(page);
    expect([storage.pages.isLive(page), ...counts(storage)]).toEqual([false, 3, 0, 0]);
  });

  test('that the tree lists waits in the queue when the last holder lets go, and leaves it when held again', () => {
    const { storage } = storeOf([full()], { slots: 3 });
    const page = listed(storage);
    expect(counts(storage)).toEqual([2, 1, 0]);
    storage.hold(page);
    expect(counts(storage)).toEqual([2, 0, 1]);
    storage.release(page);
    expect(counts(storage)).toEqual([2, 1, 0]);
  });
});

test('a slot is never handed out twice: asking without room is a bug that is told', () => {
  const { storage } = storeOf([full()], { slots: 3 });
  for (let i = 0; i < 3; i++) storage.createHeld(0, 35);
  expect(() => storage.takeSlot(0)).toThrow(expect.objectContaining({ code: 'invariant' }));
});

describe('a page in place of another', () => {
  test('has its slot, and nobody needs room for it', () => {
    const { storage } = storeOf([full()], { slots: 1 });
    const old = storage.createHeld(0, 35);
    const slot = storage.pages.slot[old];
    const page = storage.createInPlaceOf(old, 0, 50);
    expect([storage.pages.slot[page], storage.pages.holds[page], storage.pages.priority[page]]).toEqual([slot, 1, 50]);
    expect(counts(storage)).toEqual([0, 0, 1]);
    storage.release(page);
    expect(counts(storage)).toEqual([1, 0, 0]);
  });
});

describe('making room', () => {
  test('evicts nothing while enough is free', () => {
    const { storage, evicted, makeRoom } = storeOf([full()], { slots: 4 });
    listed(storage);
    makeRoom(0, 3);
    expect(evicted).toEqual([]);
  });

  test('evicts by priority, then age, no more than it must', () => {
    const { storage, evicted, makeRoom } = storeOf([full()], { slots: 4 });
    const [old, young, low] = [listed(storage), listed(storage), listed(storage, 3)];
    storage.createHeld(0, 0);
    makeRoom(0, 2);
    expect(evicted).toEqual([low, old]);
    expect([storage.pages.isLive(young), ...storage.evictedPages, ...counts(storage)]).toEqual([true, 2, 2, 1, 1]);
  });

  test('in one pool group leaves the others alone', () => {
    const { storage, evicted, makeRoom } = storeOf([full(), windowed(8)], { slots: 4 });
    const page = storage.createHeld(1, 35);
    storage.pages.block[page] = 1;
    storage.release(page);
    makeRoom(0, 2);
    expect([evicted, counts(storage, 1)]).toEqual([[], [3, 1, 0]]);
  });

  test('of everything drops all that nobody holds', () => {
    const { storage } = storeOf([full(), recurrent()], { slots: 4 });
    listed(storage);
    listed(storage);
    storage.createHeld(0, 35);
    storage.dropAll();
    expect([counts(storage), [...storage.evictedPages]]).toEqual([
      [3, 0, 1],
      [0, 0],
    ]);
  });
});

describe('pool memory', () => {
  test('is created for every pool of every group, named, and destroyed with the manager', () => {
    const device = new StampedDevice();
    const { storage } = storeOf([{ ...full(), roles: ['key', 'value'] }, windowed(8)], { slots: [4, 5] }, device);
    expect(device.pools.map(({ spec }) => [spec.label, spec.numSlots])).toEqual([
      ['pool group 0 pool 0', 4],
      ['pool group 1 pool 0', 5],
    ]);
    expect(storage.poolGroups.map(({ grows }) => grows)).toEqual([true, true]);
    storage.destroy();
    expect(device.pools.map(({ bytes }) => bytes.length)).toEqual([0, 0]);
  });

  test('that cannot be had takes back what was had already, and the reason goes through', () => {
    class SmallDevice extends StampedDevice {
      override createPool(spec: PoolSpec) {
        if (this.pools.length === 1) throw new RangeError('no more');
        return super.createPool(spec);
      }
    }
    const device = new SmallDevice();
    expect(() => storeOf([full(), windowed(8)], {}, device)).toThrow('no more');
    expect(device.pools.map(({ bytes }) => bytes.length)).toEqual([0]);
  });

  test('is awaited once, all of it', async () => {
    const waiting: (() => void)[] = [];
    class SlowDevice extends HostPageDevice {
      override createPool(spec: PoolSpec) {
        const ready = new Promise<void>((resolve) => waiting.push(resolve));
        return Object.assign(super.createPool(spec), { ready });
      }
    }
    const { storage } = storeOf([full(), windowed(8)], {}, new SlowDevice());
    let isReady = false;
    const ready = storage.ready().then(() => {
      isReady = true;
    });
    waiting[0]();
    await Promise.resolve();
    expect(isReady).toBe(false);
    waiting[1]();
    await ready;
    await storage.ready();
  });

  test('whose group holds nothing but state does not grow with the sequence', () => {
    const { storage } = storeOf([recurrent(), full()]);
    expect(storage.poolGroups.map(({ grows }) => grows)).toEqual([false, true]);
  });

  test('that fails later is told by everyone who waits', async () => {
    class FailingDevice extends HostPageDevice {
      override createPool(spec: PoolSpec) {
        return Object.assign(super.createPool(spec), { ready: Promise.reject(new Error('out of memory')) });
      }
    }
    const { storage } = storeOf([full()], {}, new FailingDevice());
    await expect(storage.ready()).rejects.toThrow('out of memory');
    await expect(storage.ready()).rejects.toThrow('out of memory');
  });
});
