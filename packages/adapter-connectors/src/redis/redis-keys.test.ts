import { expect, test } from 'vitest';
import { redisKey } from './redis-keys.ts';
import { RedisPageStore } from './redis-page-store.ts';

test('what a cluster hashes is the affinity, and the whole name where there is none', () => {
  expect(redisKey('app:', { key: 'a-1', affinity: 'text' })).toBe('app:{text}a-1');
  expect(redisKey('app:', { key: 'a-1' })).toBe('app:a-1');
});

test.each([
  { keyPrefix: 'app{1}:' },
  { maxBatch: 0 },
  { timeoutMs: 0.5 },
  { defaultTtlMs: -1 },
  { maxBytesInFlight: Number.NaN },
])('%j opens no store', async (wrong) => {
  const opening = RedisPageStore.open({ server: { client: { sendCommand: async () => null } }, ...wrong });
  await expect(opening).rejects.toMatchObject({ code: 'store-options' });
});

test('options that the client does not take open no store', async () => {
  await expect(RedisPageStore.open({ server: { single: { url: 'ftp://host' } } })).rejects.toMatchObject({
    code: 'store-options',
  });
});
