import { describe, expect, test } from 'vitest';
import { describeTierStore } from '../../../test/support/tier-store-suite.ts';
import { MemoryTierStore } from './memory-tier-store.ts';

describe('a store in memory', () => {
  describeTierStore(async () => new MemoryTierStore());

  test('counts the bytes that it keeps', async () => {
    const store = new MemoryTierStore();
    await store.put('a', new Uint8Array(5));
    await store.put('a', new Uint8Array(3));
    await store.put('b', new Uint8Array(4));
    expect(store.storedBytes).toBe(7);
    await store.close();
    expect(store.storedBytes).toBe(0);
  });
});
