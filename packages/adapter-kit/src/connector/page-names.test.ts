import { HostPageDevice, KvCacheManager } from '@bufferwise/cache-manager';
import { type CacheConfig, defineCacheConfig, type LayerGroupId, slidingWindow } from '@bufferwise/core-policy';
import { cutPools } from '@bufferwise/scratch-allocator';
import { expect, test } from 'vitest';
import { connectorLayout } from './connector-layout.ts';
import type { ConnectorGroup, ConnectorLayout, PageBuffer } from './kv-connector.ts';
import { PageNames } from './page-names.ts';

const arranged = (...roles: readonly string[]): PageBuffer[] =>
  roles.map((role, i) => ({ layerId: 0, role, offset: 32 * i, bytes: 32 }));

const group: ConnectorGroup = {
  groupId: 0 as LayerGroupId,
  lifecycle: slidingWindow(8),
  layerIds: [0, 2],
  pageBytes: 64,
  buffers: arranged('key', 'value'),
};
const layout: ConnectorLayout = { modelFingerprint: 'a model', tokensPerBlock: 16, groups: [group] };
const prefixOf = (changes: Partial<ConnectorLayout> & Partial<ConnectorGroup> = {}) =>
  new PageNames({ ...layout, ...changes }, { ...group, ...changes }).prefix;

test.each<[string, Partial<ConnectorLayout> & Partial<ConnectorGroup>]>([
  ['another model', { modelFingerprint: 'another model' }],
  ['other tokens in a block', { tokensPerBlock: 8 }],
  ['another window', { lifecycle: slidingWindow(9) }],
  ['another policy', { lifecycle: slidingWindow(8, { policy: 'optional' }) }],
  ['other layers', { layerIds: [0, 1] }],
  ['other bytes', { pageBytes: 65 }],
  ['another order of buffers', { buffers: arranged('value', 'key') }],
  ['buffers that nobody told of', { buffers: undefined }],
  ['divided buffers', { buffers: arranged('key', 'value').map((each) => ({ ...each, pagesPerBlock: 2 })) }],
])('pages of %s have other names', (_, changes) => {
  expect(prefixOf(changes)).not.toBe(prefixOf());
});

test.each<[string, Partial<ConnectorGroup>]>([
  ['another id of the group', { groupId: 3 as LayerGroupId }],
  [
    'what the numbers of its buffers are',
    { buffers: arranged('key', 'value').map((each) => ({ ...each, numbers: { type: 'f32', rowLength: 4 } })) },
  ],
])('%s changes no name', (_, changes) => {
  expect(prefixOf(changes)).toBe(prefixOf());
});

const DEVICE_BYTES = 24 << 20;
const config = (roles: readonly (readonly [role: string, size: number])[]): CacheConfig =>
  defineCacheConfig({
    tokensPerBlock: 4,
    layers: [0, 1, 2].map((layerId) => ({ type: 'attention', layerId, buffers: roles.map(([role, size]) => ({ role, size })) })),
    tiers: [{ tier: 'device', quota: DEVICE_BYTES }],
  });
const EQUAL = config([
  ['key', 1024],
  ['value', 1024],
]);

async function prefixesIn(cacheConfig: CacheConfig): Promise<string[]> {
  const manager = new KvCacheManager({ config: cacheConfig, device: new HostPageDevice() });
  const own = connectorLayout(manager, 'a model');
  const prefixes = own.groups.map((each) => new PageNames(own, each).prefix);
  await manager.close();
  return prefixes;
}

const cut = (whole: CacheConfig) => {
  const pieces = cutPools(whole, { maxPoolBytes: DEVICE_BYTES / 4 });
  expect(pieces).not.toBe(whole);
  return pieces;
};

test('buffers that lie in another order in a page of as many bytes have other names', async () => {
  const swapped = config([
    ['value', 1024],
    ['key', 1024],
  ]);
  expect(await prefixesIn(swapped)).not.toEqual(await prefixesIn(EQUAL));
});

test('devices that bind more or less share pages where these are the same, and only there', async () => {
  expect(await prefixesIn(cut(EQUAL))).toEqual(await prefixesIn(EQUAL));
  const unequal = config([
    ['key', 1024],
    ['value', 2048],
  ]);
  expect(await prefixesIn(cut(unequal))).not.toEqual(await prefixesIn(unequal));
});
