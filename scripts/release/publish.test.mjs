import { expect, test } from 'vitest';
import { inOrder, notToPublish } from './publish.mjs';

const pack = (name, dependencies = {}, version = '0.2.0') => ({ name, manifest: { version, dependencies } });

test('what others depend on is published first, whatever the order of names', () => {
  const packs = [
    pack('app', { engine: '^0.2.0', other: '^1.0.0' }),
    pack('engine', { policy: '^0.2.0', store: '^0.2.0' }),
    pack('policy'),
    pack('store', { policy: '^0.2.0' }),
  ];
  expect(inOrder(packs).map(({ name }) => name)).toEqual(['policy', 'store', 'engine', 'app']);
});

test('versions that only pending changesets give are not published', () => {
  const packages = [{ name: 'a', manifest: { version: '0.1.0' } }];
  expect(notToPublish([pack('a', {}, '0.1.0')], packages)).toBeUndefined();
  expect(notToPublish([pack('a', {}, '0.2.0')], packages)).toMatch(/^Changesets are pending: a would be 0\.2\.0/);
});
