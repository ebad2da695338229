import { describe, expect, test } from 'vitest';
import { FakeDirectory, FakeLocks } from '../../../test/support/fake-opfs.ts';
import { describeKeys, describeTierStore } from '../../../test/support/tier-store-suite.ts';
import { OpfsTierStore } from './opfs-tier-store.ts';

describe('a store in an origin private file system', () => {
  const root = new FakeDirectory();
  const locks = new FakeLocks();
  describeTierStore(() => OpfsTierStore.open({ root, locks }));
  describeKeys(() => OpfsTierStore.open({ root, locks }));

  test('removes what a closed tab left, and leaves the open ones alone', async () => {
    const [origin, tabs] = [new FakeDirectory(), new FakeLocks()];
    const gone = await OpfsTierStore.open({ root: origin, locks: tabs, name: 'here' });
    await gone.put('a', new Uint8Array(1));
    tabs.lose();
    const first = await OpfsTierStore.open({ root: origin, locks: tabs, name: 'here' });
    const second = await OpfsTierStore.open({ root: origin, locks: tabs, name: 'here' });
    expect(origin.directories.get('here')?.directories.size).toBe(2);
    await first.close();
    await second.close();
    expect(origin.directories.get('here')?.directories.size).toBe(0);
  });

  test('that knows no locks takes away nobody else', async () => {
    const origin = new FakeDirectory();
    const first = await OpfsTierStore.open({ root: origin });
    const second = await OpfsTierStore.open({ root: origin });
    await first.put('a', Uint8Array.of(1));
    expect(await first.get('a')).toEqual(Uint8Array.of(1));
    await first.close();
    await second.close();
    await second.close();
  });

  test('keeps the old value when a new one cannot be written', async () => {
    const origin = new FakeDirectory();
    const store = await OpfsTierStore.open({ root: origin, name: 'here' });
    await store.put('a', Uint8Array.of(1));
    const own = [...(origin.directories.get('here')?.directories.values() ?? [])][0];
    own.failNextWrite = true;
    await expect(store.put('a', Uint8Array.of(2))).rejects.toThrow('quota');
    expect(await store.get('a')).toEqual(Uint8Array.of(1));
    await store.close();
  });

  test('says so where the platform has none', async () => {
    await expect(OpfsTierStore.open()).rejects.toMatchObject({ code: 'no-opfs' });
  });
});
