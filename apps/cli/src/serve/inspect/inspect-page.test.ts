import { HostPageDevice, KvCacheManager } from '@bufferwise/cache-manager';
import { defineCacheConfig } from '@bufferwise/core-policy';
import { formatCount } from '@bufferwise/scratch-allocator';
import { describe, expect, it } from 'vitest';
import { inspectPage } from './inspect-page.ts';
import { prefersHtml } from './prefers-html.ts';

/** A cache with a finished request of 40 tokens, and another one that is active on the same beginning. */
async function usedCache(): Promise<KvCacheManager> {
  const config = defineCacheConfig({
    tokensPerBlock: 16,
    tiers: [
      { tier: 'device', quota: 1 << 20 },
      { tier: 'host', quota: 1 << 20 },
    ],
    layers: [
      { type: 'attention', layerId: 0, buffers: [{ role: 'key', size: 1024 }] },
      { type: 'attention', layerId: 1, slidingWindowSize: 32, buffers: [{ role: 'key', size: 1024, reusePolicy: 'optional' }] },
    ],
  });
  const manager = new KvCacheManager({ config, device: new HostPageDevice() });
  const tokens = Array.from({ length: 40 }, (_, i) => i);
  const first = manager.createKvCache({ tokens });
  await first.resume();
  first.resize(40);
  first.commit(tokens);
  first.close();
  const second = manager.createKvCache({ tokens: [...tokens, 90, 91] });
  await second.resume();
  second.resize(42);
  return manager;
}

describe('the page of /inspect', () => {
  it('says what the cache holds, by tiers, groups and requests', async () => {
    const manager = await usedCache();
    const cache = manager.inspect({ tokens: false });
    const page = inspectPage({ model: 'a-model', requests: 2, answers: { active: 1 }, statistics: manager.statistics(), cache });
    const [{ numSlots, numFree }] = cache.poolGroups;
    expect(page).toContain(`device, pool group 0: ${numSlots - numFree} of ${formatCount(numSlots)} slots of `);
    expect(page).toMatch(/host, pool group 0: 0 of \d+ slots/);
    const inUse = cache.poolGroups[0].slots.filter(({ state }) => state === 'locked').length;
    expect(inUse).toBeGreaterThan(0);
    expect(page).toContain(`<span style="flex:${inUse};background:#0072b2"></span>`);
    expect(page).toMatch(/<td>1<\/td><td>optional<\/td><td>attention<\/td><td>32 tokens<\/td>/);
    expect(page).toMatch(/<td>active<\/td><td class="n">40<\/td><td class="n">40<\/td><td class="n">42<\/td>/);
    await manager.close({ force: true });
  });

  it('loads nothing, runs nothing, and takes a name for a name', async () => {
    const manager = await usedCache();
    const [statistics, cache] = [manager.statistics(), manager.inspect({ tokens: false })];
    const page = inspectPage({ model: '<script>"&', requests: 0, answers: {}, statistics, cache });
    expect(page).toContain('<h1>&lt;script&gt;&quot;&amp;</h1>');
    expect(page).not.toMatch(/<script|<link|<img|src=|href=|url\(|@import/);
    await manager.close({ force: true });
  });
});

it('browsers get the page, and whoever does not ask for one gets JSON', () => {
  expect(prefersHtml('text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8')).toBe(true);
  expect(prefersHtml('text/*;q=0.5, application/json;q=0.4')).toBe(true);
  for (const accept of [
    undefined,
    '',
    '*/*',
    'application/json',
    'application/json, text/html;q=0.9',
    'application/json, text/html',
    'text/html;q=0, */*;q=0.1',
    'text/html;q=nonsense',
  ])
    expect(prefersHtml(accept), accept).toBe(false);
});
