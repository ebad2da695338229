import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BlocksByGroup, ConnectorLayout, KvConnector, PageStore } from '@bufferwise/adapter-kit';
import { describeKvConnector } from '@bufferwise/adapter-kit/conformance/connector';
import { MemoryPageStore, MemoryPages } from '@bufferwise/adapter-kit/memory';
import { fullAttention, type LayerGroupId, slidingWindow, ssmState } from '@bufferwise/core-policy';
import { afterAll, describe, expect, test } from 'vitest';
import { HandClock, turns, UnreliableStore } from '../../test/support/unreliable-store.ts';
import { FilePageStore } from '../file/file-page-store.ts';
import type { PageStoreConnectorOptions } from './connector-options.ts';
import { PageStoreConnector } from './page-store-connector.ts';

const outer = mkdtempSync(join(tmpdir(), 'page-store-connector-'));
afterAll(() => rmSync(outer, { recursive: true, force: true }));

function memoryHarness(
  options: PageStoreConnectorOptions,
  storeOf = (pages: MemoryPages): PageStore => new MemoryPageStore({ pages }),
) {
  const media = new WeakMap<KvConnector, MemoryPages>();
  const open = (pages: MemoryPages) => {
    const connector = new PageStoreConnector(storeOf(pages), options);
    media.set(connector, pages);
    return connector;
  };
  return {
    create: () => open(new MemoryPages()),
    another: (connector: KvConnector) => open(media.get(connector) as MemoryPages),
    spoil(connector: KvConnector) {
      for (const page of media.get(connector)?.byKey.values() ?? []) page.sealed[page.sealed.length - 1] ^= 4;
    },
  };
}

const slow = (pages: MemoryPages) => {
  const store = new UnreliableStore(pages);
  store.before = () => new Promise((resolve) => setTimeout(resolve, 3));
  return store;
};

describeKvConnector('over memory, loading beside steps,', memoryHarness({}));
describeKvConnector('over memory, loading in steps,', memoryHarness({ asyncLoad: false }));
describeKvConnector('over a slow store, loading beside steps,', memoryHarness({}, slow));
describeKvConnector('over a slow store, loading in steps,', memoryHarness({ asyncLoad: false }, slow));
describeKvConnector('with room for one page at a time,', memoryHarness({ budget: { loadingBytes: 1 } }));

let count = 0;
const files = new WeakMap<KvConnector, { store: FilePageStore; folder: string }>();
const overFiles = async () => {
  const folder = join(outer, `store-${count++}`);
  return wrapFiles(await FilePageStore.open(folder), folder);
};
const wrapFiles = (store: FilePageStore, folder: string) => {
  const connector = new PageStoreConnector(store);
  files.set(connector, { store, folder });
  return connector;
};
describeKvConnector('over files', {
  create: overFiles,
  async destroy(connector) {
    await connector.close();
    await files.get(connector)?.store.close();
  },
  another(connector) {
    const { store, folder } = files.get(connector) as { store: FilePageStore; folder: string };
    return wrapFiles(store, folder);
  },
  spoil(connector) {
    const root = join(files.get(connector)?.folder ?? '', 'pages-1');
    for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((each) => each.endsWith('.page'))) {
      const path = join(root, name);
      if (existsSync(path)) writeFileSync(path, readFileSync(path).subarray(1));
    }
  },
});

/** Full attention, a window, state: blocks of 4 tokens, pages of 4 bytes. */
const LIFECYCLES = [fullAttention(), slidingWindow(8), ssmState('required'), fullAttention({ policy: 'optional' })];
const layoutOf = (...ids: number[]): ConnectorLayout => ({
  modelFingerprint: 'model',
  tokensPerBlock: 4,
  groups: ids.map((id) => ({ groupId: id as LayerGroupId, lifecycle: LIFECYCLES[id], layerIds: [id], pageBytes: 4 })),
});

/** A connector with an engine that only calls: every page holds its group and slot. */
function engine(store: PageStore, layout: ConnectorLayout, options: PageStoreConnectorOptions = {}) {
  const connector = new PageStoreConnector(store, options);
  const written: string[] = [];
  connector.register(layout, {
    readPages: async (groupId, slots) => slots.map((slot) => Uint8Array.of(groupId, slot, 1, 2)),
    writePages: (groupId, slots) => written.push(...slots.map((slot) => `${groupId} ${slot}`)),
  });
  const { scheduler, worker } = connector;
  const step = async (preempted: readonly number[] = [], announced: readonly number[] = []) => {
    worker.beginStep(structuredClone(scheduler.buildStep()));
    await worker.preempted(preempted);
    worker.startLoad();
    for (const layerId of [0, 1, 2, 3]) await worker.waitForLayer(layerId);
    for (const layerId of [0, 1, 2, 3]) worker.saveLayer(layerId);
    await worker.waitForSave();
    await turns();
    const report = structuredClone({ finished: worker.finished(announced), failedPages: worker.failedPages() });
    worker.endStep();
    scheduler.update(report);
    return report;
  };
  return { connector, scheduler, worker, step, written };
}
function promised(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
const tokens = (length: number, first = 100) => Array.from({ length }, (_, i) => first + i);
const slotsFrom = (base: number): BlocksByGroup =>
  LIFECYCLES.map(({ kind }, id) => (kind === 'ssm' ? [base] : Array.from({ length: 8 }, (_, i) => base + 10 * id + i)));

/** Saves a text of so many tokens, in steps that leave a checkpoint each. */
async function save({ scheduler, step }: ReturnType<typeof engine>, id: number, length: number, stride = 4): Promise<void> {
  scheduler.onNewRequest({ id, tokens: tokens(length) });
  for (let end = stride; end <= length; end += stride) {
    scheduler.willWrite(id, slotsFrom(100), end);
    await step();
  }
  scheduler.requestFinished(id, slotsFrom(100));
  await step([], [id]);
}

describe('a connector over page stores', () => {
  test('after a failed load offers what is good for all groups, an older checkpoint of state included', async () => {
    const store = new UnreliableStore();
    const donor = engine(store, layoutOf(0, 1, 2));
    // Checkpoints at 8, 16 and 24.
    await save(donor, 1, 24, 8);
    const { scheduler, step } = engine(store, layoutOf(0, 1, 2));
    expect((await store.list()).keys).toHaveLength(15);
    const requests = [1, 2];
    for (const id of requests) scheduler.onNewRequest({ id, tokens: tokens(25) });
    await turns();
    expect(scheduler.lookup(1, 0)).toMatchObject({ tokens: 24 });
    let asked = 0;
    store.before = (call, names) => {
      // Block 3 of full attention: the fourth page of its group's only batch.
      if (call === 'get' && names.length === 6 && asked++ === 0) void store.delete([names[3]]);
    };
    for (const id of requests) scheduler.allocated(id, slotsFrom(100 * id), 0, 24);
    const report = await step();
    expect(report.failedPages).toEqual([
      { groupId: 0, slot: 103 },
      { groupId: 0, slot: 203 },
    ]);
    expect(report.finished.loaded).toEqual([1, 2]);
    for (const id of requests) expect(scheduler.lookup(id, 0)).toMatchObject({ tokens: 8, groups: [0, 1, 2] });
  });

  test('asks once for a page that several requests load, and loads many requests side by side', async () => {
    const store = new UnreliableStore();
    await save(engine(store, layoutOf(0)), 1, 16);
    const clock = new HandClock();
    const { scheduler, step, written } = engine(store, layoutOf(0), { clock });
    const ids = Array.from({ length: 10 }, (_, i) => i + 1);
    for (const id of ids) scheduler.onNewRequest({ id, tokens: tokens(17) });
    await turns();
    let calls = 0;
    store.before = (call) => {
      if (call === 'get') calls++;
      return clock.wait(50);
    };
    for (const id of ids) scheduler.allocated(id, slotsFrom(100 * id), 0, 16);
    expect((await step()).finished.loaded).toEqual([]);
    await clock.pass(50);
    expect((await step()).finished.loaded).toEqual(ids);
    expect(calls).toBe(1);
    expect(written).toHaveLength(40);
  });

  test('loads layer by layer: a layer waits for its own pages only', async () => {
    const store = new UnreliableStore();
    await save(engine(store, layoutOf(0, 1)), 1, 16);
    const { scheduler, worker } = engine(store, layoutOf(0, 1), { asyncLoad: false });
    scheduler.onNewRequest({ id: 1, tokens: tokens(17) });
    await turns();
    const held = promised();
    store.before = (call, names) => (call === 'get' && names.length === 2 ? held.promise : undefined);
    scheduler.allocated(1, slotsFrom(100), 0, 16);
    worker.beginStep(scheduler.buildStep());
    worker.startLoad();
    await worker.waitForLayer(0);
    let isThere = false;
    const second = worker.waitForLayer(1).then(() => {
      isThere = true;
    });
    await turns();
    expect(isThere).toBe(false);
    held.resolve();
    await second;
  });

  test('never writes a page of a request that gave up, or was preempted, while it was loading', async () => {
    for (const how of ['finished', 'preempted']) {
      const store = new UnreliableStore();
      await save(engine(store, layoutOf(0)), 1, 16);
      const { scheduler, step, written } = engine(store, layoutOf(0));
      scheduler.onNewRequest({ id: 1, tokens: tokens(17) });
      await turns();
      const held = promised();
      store.before = (call) => (call === 'get' ? held.promise : undefined);
      scheduler.allocated(1, slotsFrom(100), 0, 16);
      await step();
      if (how === 'finished') {
        expect(scheduler.requestFinished(1, slotsFrom(100))).toEqual({ delayFree: true });
        expect((await step([], [1])).finished.saved).toEqual([1]);
      } else {
        expect((await step([1])).finished.loaded).toEqual([1]);
      }
      held.resolve();
      await turns();
      expect(written).toEqual([]);
    }
  });

  test('takes a store that does not answer in time as one that has nothing, and gives up its loads and saves', async () => {
    const store = new UnreliableStore();
    await save(engine(store, layoutOf(0)), 1, 16);
    const clock = new HandClock();
    const { connector, scheduler, step, written } = engine(store, layoutOf(0), { clock });
    scheduler.onNewRequest({ id: 1, tokens: tokens(17) });
    await turns();
    store.before = () => new Promise(() => {});
    scheduler.onNewRequest({ id: 2, tokens: tokens(17) });
    expect(scheduler.lookup(2, 0)).toEqual({ state: 'pending' });
    await clock.pass(1_000);
    expect(scheduler.lookup(2, 0)).toMatchObject({ tokens: 0 });
    scheduler.allocated(1, slotsFrom(100), 0, 16);
    scheduler.onNewRequest({ id: 3, tokens: tokens(16, 900) });
    scheduler.willWrite(3, slotsFrom(300), 16);
    await step();
    expect(scheduler.requestFinished(3, slotsFrom(300))).toEqual({ delayFree: true });
    expect((await step([], [3])).finished.saved).toEqual([]);
    await clock.pass(1_000);
    // Its pages were read: they need not wait for the store.
    expect((await step()).finished.saved).toEqual([3]);
    await clock.pass(9_000);
    expect((await step()).finished.loaded).toEqual([1]);
    const closing = connector.close();
    await clock.pass(30_000);
    await closing;
    expect(written).toEqual([]);
    expect(connector.statistics().groups.get(0 as LayerGroupId)).toMatchObject({ failed: 4, notStored: 4 });
  });

  test('goes on without a store that is down or full', async () => {
    const store = new UnreliableStore();
    const down = engine(store, layoutOf(0, 1, 2));
    store.before = () => {
      throw new Error('down');
    };
    await save(down, 1, 16);
    store.before = () => {};
    store.isFull = true;
    await save(down, 2, 16);
    expect(down.connector.takeEvents()).toEqual([]);
    expect(down.connector.statistics().groups.get(0 as LayerGroupId)).toMatchObject({ saved: 0, notStored: 8 });
    store.isFull = false;
    await save(down, 3, 16);
    expect(down.connector.statistics().groups.get(0 as LayerGroupId)).toMatchObject({ saved: 4 });
  });

  test('removes a page of another length than it must have, and says so', async () => {
    const pages = new MemoryPages();
    const store = new MemoryPageStore({ pages });
    await save(engine(store, layoutOf(0)), 1, 4);
    const [key] = pages.byKey.keys();
    const { connector, scheduler, step } = engine(store, layoutOf(0));
    scheduler.onNewRequest({ id: 1, tokens: tokens(5) });
    await turns();
    await store.delete([{ key }]);
    await store.put([{ key, bytes: new Uint8Array(3) }]);
    scheduler.allocated(1, slotsFrom(100), 0, 4);
    expect((await step()).failedPages).toEqual([{ groupId: 0, slot: 100 }]);
    await turns();
    expect(await store.has([{ key }])).toEqual([false]);
    expect(connector.takeEvents()).toMatchObject([{ type: 'removed', groupId: 0 }]);
  });

  test('loads an optional group only when it was selected and is whole', async () => {
    const store = new UnreliableStore();
    await save(engine(store, layoutOf(0, 3)), 1, 16);
    for (const [blocks, expected] of [
      [slotsFrom(100), 8],
      [[slotsFrom(100)[0]], 4],
    ] as const) {
      const { scheduler, step, written } = engine(store, layoutOf(0, 3));
      scheduler.onNewRequest({ id: 1, tokens: tokens(17) });
      await turns();
      expect(scheduler.lookup(1, 0)).toMatchObject({ tokens: 16, groups: [0, 3] });
      scheduler.allocated(1, blocks, 0, 16);
      await step();
      expect(written).toHaveLength(expected);
    }
  });

  test('a side buffer that is required shortens the match, and one that is optional does not', async () => {
    const store = new UnreliableStore();
    await save(engine(store, layoutOf(0)), 1, 16);
    const both = engine(store, layoutOf(0, 3));
    await save(both, 2, 8);
    both.scheduler.onNewRequest({ id: 3, tokens: tokens(17) });
    await turns();
    expect(both.scheduler.lookup(3, 0)).toMatchObject({ tokens: 16, groups: [0] });
    const strict = {
      ...layoutOf(0, 3),
      groups: layoutOf(0, 3).groups.map((group) => ({ ...group, lifecycle: fullAttention() })),
    };
    const strictStore = new UnreliableStore();
    const full = engine(strictStore, strict);
    await save(full, 1, 16);
    const { keys } = await strictStore.list();
    const side = keys.filter(({ key }) => key.startsWith(keys.at(-1)?.key.slice(0, 64) ?? ''));
    full.scheduler.onNewRequest({ id: 2, tokens: tokens(9) });
    await turns();
    expect(full.scheduler.lookup(2, 0)).toMatchObject({ tokens: 8 });
    await strictStore.delete(side);
    full.scheduler.onNewRequest({ id: 3, tokens: tokens(17) });
    await turns();
    expect(full.scheduler.lookup(3, 0)).toMatchObject({ tokens: 0 });
  });

  test('saves a text when it is seen for the second time, if it is told so', async () => {
    const store = new UnreliableStore();
    const { connector, scheduler, step } = engine(store, layoutOf(0), { admission: { secondUse: true } });
    const counts = () => connector.statistics().groups.get(0 as LayerGroupId);
    const run = async (id: number, length: number) => {
      scheduler.onNewRequest({ id, tokens: tokens(length) });
      // Told again, with more tokens: no second user.
      scheduler.onNewRequest({ id, tokens: tokens(length + 4) });
      scheduler.willWrite(id, slotsFrom(100), length + 4);
      await step();
      await turns();
    };
    await run(1, 8);
    expect(counts()).toMatchObject({ saved: 0, notAdmitted: 3 });
    await run(2, 16);
    expect(counts()).toMatchObject({ saved: 3, notAdmitted: 5 });
  });

  test('leaves short texts alone, if it is told so', async () => {
    const store = new UnreliableStore();
    const calls: string[] = [];
    store.before = (call) => {
      calls.push(call);
    };
    const short = engine(store, layoutOf(0), { admission: { minTokens: 16 } });
    await save(short, 1, 12);
    expect(calls).toEqual([]);
    await save(short, 2, 16);
    expect(calls).toContain('put');
  });

  test('gives up saves beyond its budget of bytes, and spreads the others over time', async () => {
    const clock = new HandClock();
    const store = new UnreliableStore();
    const budget = { savingBytes: 12, savedBytesPerSecond: 4 };
    const { connector, scheduler, step } = engine(store, layoutOf(0), { clock, budget });
    const counts = () => connector.statistics().groups.get(0 as LayerGroupId);
    scheduler.onNewRequest({ id: 1, tokens: tokens(16) });
    scheduler.willWrite(1, slotsFrom(100), 16);
    await step();
    expect(counts()).toMatchObject({ overBudget: 1, saved: 0 });
    await clock.pass(1_999);
    expect(counts()).toMatchObject({ saved: 0 });
    await clock.pass(1);
    expect(counts()).toMatchObject({ saved: 3 });
  });

  test('saves what was generated, once it is told of it', async () => {
    const store = new UnreliableStore();
    const { scheduler, step } = engine(store, layoutOf(0));
    scheduler.onNewRequest({ id: 1, tokens: tokens(6) });
    scheduler.willWrite(1, slotsFrom(100), 6);
    await step();
    scheduler.onNewRequest({ id: 1, tokens: tokens(12) });
    scheduler.willWrite(1, slotsFrom(100), 12);
    await step();
    await turns();
    expect((await store.list()).keys).toHaveLength(3);
  });

  test.each([
    [{ timeouts: { loadMs: Number.NaN } }, 'timeouts.loadMs'],
    [{ budget: { savingBytes: 0 } }, 'budget.savingBytes'],
    [{ admission: { minTokens: -1 } }, 'admission.minTokens'],
  ])('takes no options like %j', (options, name) => {
    expect(() => new PageStoreConnector(new MemoryPageStore(), options)).toThrowError(
      expect.objectContaining({ code: 'invalid-option', message: expect.stringContaining(name) }),
    );
  });

  test('says so when it is used before it knows a layout', () => {
    expect(() => new PageStoreConnector(new MemoryPageStore()).scheduler).toThrowError(
      expect.objectContaining({ code: 'unsupported-call' }),
    );
  });
});
