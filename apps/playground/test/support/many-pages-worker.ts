/**
 * What runs in place of the app's worker where only the map is asked about: the app's own look at a manager of ten thousand pages, and no model. The switch
 * of the page lets all of them change, as often as the app looks; the button for one more step lets one of them change.
 */
import { HostPageDevice, KvCacheManager } from '@bufferwise/cache-manager';
import { defineCacheConfig } from '@bufferwise/core-policy';
import type { HybridEngine } from '@bufferwise/hybrid-engine';
import type { Order } from '../../src/protocol/messages.ts';
import { describeGroups } from '../../src/worker/describe-engine.ts';
import { EventJournal } from '../../src/worker/event-journal.ts';
import { type Post, Watcher } from '../../src/worker/watcher.ts';

const TOKENS_PER_BLOCK = 4;
const NUM_PAGES = 10_000;
const QUOTA = 2 << 20;

const config = defineCacheConfig({
  tokensPerBlock: TOKENS_PER_BLOCK,
  tiers: [{ tier: 'device', quota: QUOTA }],
  layers: [{ type: 'attention', layerId: 0, buffers: [{ role: 'key', size: 208 }] }],
  maxUtilForResume: 1,
});
const post: Post = (report, transfer = []) => self.postMessage(report, { transfer });
const journal = new EventJournal(() => performance.now());
const manager = new KvCacheManager({ config, device: new HostPageDevice() });
const watcher = new Watcher(post, journal);
const engine = {
  manager,
  model: { tokenizer: { decode: () => '' } },
  statistics: () => manager.statistics(),
  preemptions: { numSuspensions: 0, numReleases: 0 },
  outside: null,
  costs: { numSteps: 0 },
} as unknown as HybridEngine;

const many = manager.createKvCache({ id: 0 });
const one = manager.createKvCache({ id: 1 });
let changing = false;

async function changeAll(): Promise<void> {
  let next = performance.now();
  while (changing) {
    // In use now, then held by who waits: each page looks different.
    if (many.status === 'active') many.suspend();
    else await many.resume();
    watcher.look();
    // As often as a screen shows, if it can be.
    next = Math.max(next + 1000 / 60, performance.now());
    await new Promise((resolve) => setTimeout(resolve, next - performance.now()));
  }
  post({ type: 'notice', message: 'All is still.' });
}

self.addEventListener('message', async ({ data }: MessageEvent<Order>) => {
  if (data.type === 'open') {
    await many.resume();
    many.resize((NUM_PAGES - 1) * TOKENS_PER_BLOCK);
    await one.resume();
    const { settings } = data;
    const about = { model: 'no model', device: 'no device', numParameters: 0, tokensPerBlock: TOKENS_PER_BLOCK, settings };
    post({
      type: 'ready',
      about: { ...about, leastDeviceBytes: QUOTA, layers: [], groups: describeGroups(manager), keeps: { kept: false, why: '' } },
    });
    watcher.watch(engine);
  }
  if (data.type === 'pace') {
    changing = data.stepping;
    if (changing) void changeAll();
  }
  if (data.type === 'forget') {
    one.resize(one.capacity === 0 ? TOKENS_PER_BLOCK : 0);
    watcher.look();
  }
});
