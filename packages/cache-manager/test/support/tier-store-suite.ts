import { expect, test } from 'vitest';
import type { TierStore } from '../../src/index.ts';

const bytes = (...values: number[]) => Uint8Array.from(values);

/** What the manager relies on in every store of a disk tier. */
export function describeTierStore(open: () => Promise<TierStore>): void {
  const withStore = (sentence: string, story: (store: TierStore) => Promise<void>) =>
    test(sentence, async () => {
      const store = await open();
      await story(store);
      await store.close();
    });

  withStore('gives back what was stored', async (store) => {
    await store.put('tier1-0-0', bytes(1, 2, 3));
    expect([...((await store.get('tier1-0-0')) ?? [])]).toEqual([1, 2, 3]);
  });

  withStore('knows nothing of a key that was never stored, or was deleted', async (store) => {
    expect(await store.get('tier1-0-0')).toBeUndefined();
    await store.put('tier1-0-0', bytes(1));
    await store.delete('tier1-0-0');
    expect(await store.get('tier1-0-0')).toBeUndefined();
    await store.delete('tier1-0-0');
  });

  withStore('keeps what was stored last, whether it is longer or shorter', async (store) => {
    for (const value of [bytes(1, 2), bytes(3, 4, 5, 6), bytes(7)]) {
      await store.put('tier1-0-0', value);
      expect([...((await store.get('tier1-0-0')) ?? [])]).toEqual([...value]);
    }
  });

  withStore('keeps its own copy', async (store) => {
    const value = bytes(1, 2, 3);
    await store.put('tier1-0-0', value);
    value.fill(9);
    const found = await store.get('tier1-0-0');
    expect([...(found ?? [])]).toEqual([1, 2, 3]);
    found?.fill(9);
    expect([...((await store.get('tier1-0-0')) ?? [])]).toEqual([1, 2, 3]);
  });

  withStore('stores a part of a larger array as just that part', async (store) => {
    await store.put('tier1-0-0', bytes(0, 1, 2, 3).subarray(1, 3));
    expect([...((await store.get('tier1-0-0')) ?? [])]).toEqual([1, 2]);
  });

  withStore('lists exactly the keys that are there', async (store) => {
    for (const key of ['tier1-0-0', 'tier1-0-1', 'tier2-0-0']) await store.put(key, bytes(1));
    await store.delete('tier1-0-1');
    expect([...(await store.list())].sort()).toEqual(['tier1-0-0', 'tier2-0-0']);
  });

  withStore('serves many keys at once', async (store) => {
    const keys = Array.from({ length: 50 }, (_, i) => `tier1-0-${i}`);
    await Promise.all(keys.map((key, i) => store.put(key, bytes(i, i + 1))));
    const found = await Promise.all(keys.map((key) => store.get(key)));
    expect(found.map((value) => [...(value ?? [])])).toEqual(keys.map((_, i) => [i, i + 1]));
  });

  withStore('has nothing of another store, nor of one that was closed', async (store) => {
    const other = await open();
    await other.put('tier1-0-0', bytes(1));
    expect(await store.get('tier1-0-0')).toBeUndefined();
    await other.close();
    const next = await open();
    expect(await next.list()).toEqual([]);
    await next.close();
  });
}

/** What a store promises that writes names to a disk. */
export function describeKeys(open: () => Promise<TierStore>): void {
  test.each(['', '../x', 'a/b', 'A', 'a'.repeat(101), '.'])('refuses the key %j', async (key) => {
    const store = await open();
    await expect(store.put(key, bytes(1))).rejects.toMatchObject({ code: 'invalid-key' });
    await expect(store.get(key)).rejects.toMatchObject({ code: 'invalid-key' });
    await expect(store.delete(key)).rejects.toMatchObject({ code: 'invalid-key' });
    await store.close();
  });

  test('does nothing once it is told to stop', async () => {
    const store = await open();
    const options = { signal: AbortSignal.abort() };
    await expect(store.put('a', bytes(1), options)).rejects.toThrow();
    await expect(store.get('a', options)).rejects.toThrow();
    await expect(store.delete('a', options)).rejects.toThrow();
    await expect(store.list(options)).rejects.toThrow();
    expect(await store.list()).toEqual([]);
    await store.close();
  });
}
