import { describe, expect, test } from 'vitest';
import { FailingStore } from '../../test/support/failing-tiers.ts';
import { DiskMemory } from './disk-memory.ts';
import { MemoryTierStore } from './stores/memory-tier-store.ts';

const page = (value: number) => new Uint8Array(16).fill(value);

function diskOf(store = new MemoryTierStore()) {
  const memory = new DiskMemory(store, 'tier2', [16, 16]);
  memory.reserve(0, 8);
  memory.reserve(1, 8);
  return { store, memory };
}

/** A store whose calls end when they are told to. */
class SlowStore extends MemoryTierStore {
  readonly calls: string[] = [];
  readonly #waiting: (() => void)[] = [];

  override async put(key: string, bytes: Uint8Array): Promise<void> {
    await this.#turn(`put ${key}`);
    await super.put(key, bytes);
  }

  override async delete(key: string): Promise<void> {
    await this.#turn(`delete ${key}`);
    await super.delete(key);
  }

  /** Ends the call that has waited longest, as soon as there is one. */
  async next(): Promise<void> {
    while (this.#waiting.length === 0) await Promise.resolve();
    this.#waiting.shift()?.();
  }

  #turn(call: string): Promise<void> {
    this.calls.push(call);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

describe('the pages of a disk tier', () => {
  test('come back from the slot they were written to', async () => {
    const { memory } = diskOf();
    await Promise.all([memory.write(0, 5, page(1)), memory.write(0, 0, page(2)), memory.write(1, 5, page(3))]);
    expect(await memory.read(0, 5)).toEqual(page(1));
    expect(await memory.read(0, 0)).toEqual(page(2));
    expect(await memory.read(1, 5)).toEqual(page(3));
    expect(memory.view()).toBeNull();
  });

  test('are not there once they are cleared', async () => {
    const { store, memory } = diskOf();
    await memory.write(0, 5, page(1));
    memory.clear(0, 5);
    memory.clear(0, 5);
    await memory.settled();
    expect(await memory.read(0, 5)).toBeNull();
    expect(store.storedBytes).toBe(0);
  });

  test('go along when their slot gets another number', async () => {
    const { memory } = diskOf();
    await memory.write(0, 5, page(1));
    memory.move(0, 5, 2);
    memory.move(0, 6, 3);
    expect(await memory.read(0, 2)).toEqual(page(1));
    expect(await memory.read(0, 5)).toBeNull();
  });

  test('take no more keys than there were pages at a time', async () => {
    const { store, memory } = diskOf();
    for (let i = 0; i < 100; i++) {
      await memory.write(0, i % 8, page(i));
      if (i >= 3) memory.clear(0, (i - 3) % 8);
    }
    await memory.settled();
    expect(store.storedBytes).toBe(3 * 16);
    expect((await store.list()).every((key) => Number(key.split('-')[2]) < 4)).toBe(true);
  });

  test('of an earlier manager are forgotten, and what is not of this tier is left alone', async () => {
    const store = new MemoryTierStore();
    for (const key of ['tier2-0-3', 'tier1-0-3']) await store.put(key, page(9));
    const { memory } = diskOf(store);
    await memory.write(0, 0, page(1));
    expect([...(await store.list())].sort()).toEqual(['tier1-0-3', 'tier2-0-0']);
    await memory.close();
    expect(await store.list()).toEqual(['tier1-0-3']);
  });

  test.each([
    ['shortened', (bytes: Uint8Array) => bytes.subarray(1)],
    ['longer', (bytes: Uint8Array) => Uint8Array.of(...bytes, 0)],
    ['changed in one bit', (bytes: Uint8Array) => bytes.with(7, bytes[7] ^ 16)],
  ])('that are %s are not taken for what they were', async (_, damage) => {
    const { store, memory } = diskOf();
    await memory.write(0, 0, page(1));
    const [key] = await store.list();
    await store.put(key, damage((await store.get(key)) as Uint8Array));
    expect(await memory.read(0, 0)).toBeNull();
  });

  test('of before are not taken for what was to replace them', async () => {
    const { store, memory } = diskOf();
    await memory.write(0, 0, page(1));
    const [key] = await store.list();
    const before = (await store.get(key)) as Uint8Array;
    memory.clear(0, 0);
    await memory.write(0, 0, page(2));
    await store.put(key, before);
    expect(await memory.read(0, 0)).toBeNull();
  });

  test('that cannot be stored, or read, are told, and what comes after is served', async () => {
    const inner = new MemoryTierStore();
    const store = new FailingStore(inner, { put: (call) => call === 1, get: (call) => call === 1, delete: (call) => call === 1 });
    const memory = new DiskMemory(store, 'tier2', [16]);
    memory.reserve(0, 8);
    await expect(memory.write(0, 0, page(1))).rejects.toThrow('no room');
    memory.clear(0, 0);
    await memory.write(0, 0, page(2));
    expect(await memory.read(0, 0)).toBeNull();
    expect(await memory.read(0, 0)).toEqual(page(2));
    memory.clear(0, 0);
    await memory.settled();
    await memory.close();
  });

  test('are kept also where the store cannot say what it has', async () => {
    class Forgetful extends MemoryTierStore {
      override async list(): Promise<string[]> {
        throw new Error('no idea');
      }
    }
    const { memory } = diskOf(new Forgetful());
    await memory.write(0, 0, page(1));
    expect(await memory.read(0, 0)).toEqual(page(1));
  });
});

describe('calls on one key', () => {
  test('run one after the other, in the order in which they were made', async () => {
    const store = new SlowStore();
    const { memory } = diskOf(store);
    const first = memory.write(0, 0, page(1));
    memory.clear(0, 0);
    const second = memory.write(0, 4, page(2));
    const read = memory.read(0, 4);
    const third = memory.write(0, 5, page(3));
    await store.next();
    await first;
    expect(store.calls).toEqual(['put tier2-0-0', 'put tier2-0-1']);
    await store.next();
    await third;
    await store.next();
    await second;
    expect(store.calls).toEqual(['put tier2-0-0', 'put tier2-0-1', 'put tier2-0-0']);
    expect(await read).toEqual(page(2));
  });

  test('of which one was overtaken are left out', async () => {
    const store = new SlowStore();
    const { memory } = diskOf(store);
    void memory.write(0, 0, page(1));
    memory.clear(0, 0);
    const last = memory.write(0, 1, page(2));
    await store.next();
    await store.next();
    await last;
    expect(store.calls).toEqual(['put tier2-0-0', 'put tier2-0-0']);
  });
});
