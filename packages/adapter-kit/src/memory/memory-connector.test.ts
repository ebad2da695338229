import { describe, expect, test } from 'vitest';
import { describeKvConnector } from '../conformance/connector/index.ts';
import { memoryConnectorHarness } from '../conformance/connector/memory-connector-rig.ts';
import { ConnectorStage, type StageRequest, stageLayout, TOKENS_PER_BLOCK } from '../conformance/connector/stage.ts';
import { checkedConnector } from '../connector/checked-connector.ts';
import type { FailedPage } from '../connector/kv-connector.ts';
import { MemoryConnector } from './memory-connector.ts';
import { TroubledStore, type Troubles } from './troubled-store-rig.ts';

/** Slowness changes nothing that a connector promises. */
for (const asyncLoad of [true, false]) {
  const slow = memoryConnectorHarness(asyncLoad, checkedConnector, (pages) => new TroubledStore({ pages, slowMs: 3 }));
  describeKvConnector(`memory on a slow store, loading ${asyncLoad ? 'beside' : 'in'} steps,`, slow);
}

/** Bytes that only some of the texts below fit into. */
const FEW_BYTES = 3000;

const troubles: [string, Troubles][] = [
  ['slow', { slowMs: 3 }],
  ['failing now and then', { failing: 0.3 }],
  ['failing always', { failing: 1 }],
  ['full', { quotaBytes: FEW_BYTES }],
  ['damaging pages', { damaging: 0.2 }],
  ['all of it', { slowMs: 2, failing: 0.2, damaging: 0.1, quotaBytes: FEW_BYTES }],
];

const pageOf = ({ groupId, slot }: FailedPage) => `${groupId} ${slot}`;

/** Texts with beginnings in common: eight stories, which part at several points. */
function textOf(number: number): number[] {
  const length = 9 + ((number * 5) % 16);
  return Array.from({ length }, (_, i) => (number % 4) * 100 + (i >= 8 ? (number % 8) * 10 : 0) + i);
}

/** Tells what was loaded wrongly: other bytes than the text has, in a page that was not reported as failed. */
function wrongPages(stage: ConnectorStage, request: StageRequest, tokens: number, groups: readonly number[]): string[] {
  const failed = new Set(stage.failed.map(pageOf));
  const { pages } = stage.memory;
  return stage.layout.groups.flatMap(({ groupId, lifecycle }) => {
    if (!groups.includes(groupId)) return [];
    const slots = request.blocks[groupId] ?? [];
    const isState = lifecycle.kind === 'ssm';
    const first =
      lifecycle.kind === 'attention' && lifecycle.windowSize !== null
        ? Math.floor(Math.max(0, tokens + 1 - lifecycle.windowSize) / TOKENS_PER_BLOCK)
        : 0;
    const blocks = isState ? [0] : Array.from({ length: tokens / TOKENS_PER_BLOCK - first }, (_, i) => first + i);
    return blocks
      .filter((block) => !failed.has(`${groupId} ${slots[block]}`))
      .filter((block) => {
        const wanted = stage.content(request, groupId, isState ? tokens : (block + 1) * TOKENS_PER_BLOCK);
        return pages.get(`${groupId} ${slots[block]}`)?.join() !== wanted.join();
      })
      .map((block) => `block ${block} of group ${groupId}`);
  });
}

/** An engine's request: loads what is offered, computes again what failed, and saves. Answers how much it loaded whole. */
async function serve(stage: ConnectorStage, tokens: readonly number[]): Promise<number> {
  const { scheduler } = stage.connector;
  const request = stage.request(tokens);
  stage.failed.length = 0;
  // Slots are given out again and again: what is in them is of whoever had them before.
  scheduler.onNewRequest(request);
  const offer = await stage.known(request);
  scheduler.allocated(request.id, request.blocks, 0, offer.tokens);
  await stage.step();
  while (offer.async && !stage.loaded.includes(request.id)) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    await stage.step();
  }
  if (offer.async) scheduler.allocated(request.id, request.blocks, 0, 0);

  const own = new Set(request.blocks.flatMap((slots, groupId) => (slots ?? []).map((slot) => `${groupId} ${slot}`)));
  expect(stage.failed.map(pageOf).filter((page) => !own.has(page))).toEqual([]);
  expect(new Set(stage.failed.map(pageOf)).size).toBe(stage.failed.length);
  expect(stage.failed.every(({ groupId }) => offer.groups.includes(groupId))).toBe(true);
  expect(wrongPages(stage, request, offer.tokens, offer.tokens === 0 ? [] : offer.groups)).toEqual([]);

  const kept = stage.failed.length === 0 ? offer.tokens : 0;
  let begin = kept;
  for (let end = kept + TOKENS_PER_BLOCK; begin < tokens.length; end += TOKENS_PER_BLOCK) {
    const from = begin;
    const to = Math.min(end, tokens.length);
    scheduler.willWrite(request.id, request.blocks, to);
    await stage.step({ write: () => stage.compute(request, from, to) });
    begin = to;
  }
  await stage.finish(request);
  return kept;
}

describe.each([true, false])('loading beside steps: %s', (asyncLoad) => {
  test.each(troubles)('a store that is %s costs time, and never gives a page of another text', async (what, faults) => {
    const store = new TroubledStore({ ...faults, seed: asyncLoad ? 1 : 2 });
    const connector = checkedConnector(new MemoryConnector({ store, asyncLoad }));
    const stage = new ConnectorStage(connector, stageLayout(connector), 10_000);
    let loaded = 0;
    for (let i = 0; i < 48; i++) loaded += await serve(stage, textOf(i * 5));
    if (faults.failing) expect(store.happened.failed).toBeGreaterThan(0);
    if (faults.damaging) expect(store.happened.damaged).toBeGreaterThan(0);
    if (faults.quotaBytes) expect(store.statistics().refused).toBeGreaterThan(0);
    if (faults.failing === 1) expect(loaded).toBe(0);
    else expect(loaded, what).toBeGreaterThan(0);

    // Once the trouble is over, what was lost is saved again.
    store.isTroubled = false;
    if (faults.quotaBytes === undefined) {
      await serve(stage, textOf(3));
      expect(await serve(stage, textOf(3))).toBe(TOKENS_PER_BLOCK * Math.floor((textOf(3).length - 1) / TOKENS_PER_BLOCK));
    }
    await connector.close();
    await store.close();
  });
});

test('a page that could not be loaded is saved again by the request that computed it instead', async () => {
  const store = new TroubledStore({ damaging: 1 });
  const connector = checkedConnector(new MemoryConnector({ store }));
  const stage = new ConnectorStage(connector, stageLayout(connector), 10_000);
  await serve(stage, textOf(1));
  expect(await serve(stage, textOf(1))).toBe(0);
  expect(stage.failed.length).toBeGreaterThan(0);
  store.isTroubled = false;
  expect(await serve(stage, textOf(1))).toBe(12);
  await connector.close();
});

test('a request that gives up while it loads keeps its pages until the load has ended', async () => {
  const store = new TroubledStore({ slowMs: 20 });
  const connector = checkedConnector(new MemoryConnector({ store }));
  const stage = new ConnectorStage(connector, stageLayout(connector), 10_000);
  await serve(stage, textOf(1));
  const request = stage.request(textOf(1));
  const { scheduler } = connector;
  scheduler.onNewRequest(request);
  const { tokens } = await stage.known(request);
  scheduler.allocated(request.id, request.blocks, 0, tokens);
  await stage.step();
  expect(scheduler.requestFinished(request.id, request.blocks)).toMatchObject({ delayFree: true });
  let isBack = false;
  while (!isBack) {
    const { finished } = await stage.step({ announced: isBack ? [] : [request.id] });
    isBack = finished.saved.includes(request.id);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  // Whoever has the pages next is not disturbed.
  for (const page of stage.memory.pages.values()) page.fill(0x77);
  await connector.close();
  for (const page of stage.memory.pages.values()) expect(page.every((byte) => byte === 0x77)).toBe(true);
});

test('a wait for a layer can be given up, and closing ends loads that are under way as failed', async () => {
  const store = new TroubledStore({});
  const connector = checkedConnector(new MemoryConnector({ store, asyncLoad: false }));
  const stage = new ConnectorStage(connector, stageLayout(connector), 10_000);
  await serve(stage, textOf(1));
  const request = stage.request(textOf(1));
  const { scheduler, worker } = connector;
  scheduler.onNewRequest(request);
  const { tokens } = await stage.known(request);
  scheduler.allocated(request.id, request.blocks, 0, tokens);
  store.get = (_, options) =>
    new Promise((_resolve, reject) => options?.signal?.addEventListener('abort', () => reject(options.signal?.reason)));
  worker.beginStep(scheduler.buildStep());
  worker.startLoad();
  const controller = new AbortController();
  const waiting = worker.waitForLayer(0, { signal: controller.signal });
  controller.abort(new Error('enough'));
  await expect(waiting).rejects.toThrow('enough');
  await connector.close();
});
