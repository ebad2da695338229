import { defineCacheConfig } from '@bufferwise/core-policy';
import { expect, test } from 'vitest';
import { full, model, seq } from '../test/support/stage.ts';
import { DISPOSE } from './dispose.ts';
import { HostPageDevice, KvCacheManager } from './index.ts';

test('disposing is what `using` does, also where the runtime has no symbol for it', () => {
  expect(DISPOSE).toBe(Symbol.dispose ?? Symbol.for('Symbol.dispose'));
});

test('a request that is disposed is closed, a manager closes its requests first', () => {
  const manager = new KvCacheManager({ config: defineCacheConfig(model([full()])), device: new HostPageDevice() });
  const [first, second] = [manager.createKvCache({ tokens: seq(4) }), manager.createKvCache()];
  first[DISPOSE]();
  expect([first.status, manager.statistics().openRequests]).toEqual(['closed', 1]);
  manager[DISPOSE]();
  expect(second.status).toBe('closed');
  first[DISPOSE]();
  manager[DISPOSE]();
});
