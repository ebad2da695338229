import { describePageStore } from '@bufferwise/adapter-kit/conformance/page-store';
import { expect, test } from 'vitest';
import { NearPageStore } from './near-page-store.ts';

describePageStore('near', { create: ({ quotaBytes = 1 << 24 } = {}) => new NearPageStore({ quotaBytes }) });

const page = (seed: number) => Uint8Array.from({ length: 40 }, (_, i) => seed + i);
const entry = (key: string, seed: number) => ({ key, bytes: page(seed) });

test('keeps what was used last within its bytes', async () => {
  const store = new NearPageStore({ quotaBytes: 100 });
  await store.put([entry('a', 1), entry('b', 2)]);
  await store.get([{ key: 'a' }]);
  expect(await store.put([entry('c', 3)])).toEqual([{ status: 'stored' }]);
  expect(await store.has([{ key: 'a' }, { key: 'b' }, { key: 'c' }])).toEqual([true, false, true]);
  expect(store.statistics()).toMatchObject({ usedBytes: 80, quotaBytes: 100 });
});

test('never takes what is larger than all of it', async () => {
  const store = new NearPageStore({ quotaBytes: 30 });
  expect(await store.put([entry('a', 1)])).toEqual([{ status: 'refused', reason: 'too-large' }]);
  expect(store.statistics()).toMatchObject({ usedBytes: 0, refused: 1 });
});

test.each([0, Number.NaN, Number.POSITIVE_INFINITY])('refuses a quota of %d', (quotaBytes) => {
  expect(() => new NearPageStore({ quotaBytes })).toThrow(/quotaBytes is/);
});
