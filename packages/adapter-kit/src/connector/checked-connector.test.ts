import { fullAttention, type LayerGroupId, ssmState } from '@bufferwise/core-policy';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { MemoryConnector } from '../memory/memory-connector.ts';
import { checkedConnector } from './checked-connector.ts';
import type {
  BlocksByGroup,
  ConnectorGroup,
  ConnectorLayout,
  ConnectorScheduler,
  ConnectorWorker,
  KvConnector,
} from './kv-connector.ts';

const group = (groupId: number, more: Partial<ConnectorGroup> = {}): ConnectorGroup => ({
  groupId: groupId as LayerGroupId,
  lifecycle: fullAttention(),
  layerIds: [0],
  pageBytes: 8,
  ...more,
});
const layout: ConnectorLayout = {
  modelFingerprint: 'model a',
  tokensPerBlock: 4,
  groups: [group(0), group(2, { lifecycle: ssmState('required'), layerIds: [1] })],
};
const memory = {
  readPages: async (_: unknown, slots: readonly number[]) => slots.map(() => new Uint8Array(8)),
  writePages: () => {},
};
const tokens = [1, 2, 3, 4, 5, 6, 7, 8, 9];
/** For nine tokens; group 1 is private. */
const blocks: BlocksByGroup = [[0, 1, 2], undefined, [0]];

const code = (value: string) => expect.objectContaining({ name: 'AdapterError', code: value });

let inner: MemoryConnector;
let connector: KvConnector;
beforeEach(() => {
  inner = new MemoryConnector();
  connector = checkedConnector(inner);
});

test('a connector for another version of the interface is refused', () => {
  const later = Object.assign(Object.create(inner), { specVersion: 'v2' });
  expect(() => checkedConnector(later)).toThrow(code('plugin-spec-version'));
});

describe('registering', () => {
  test.each<[string, Partial<ConnectorLayout>, string]>([
    ['no fingerprint', { modelFingerprint: '' }, 'invalid-connector-layout'],
    ['blocks of no tokens', { tokensPerBlock: 0 }, 'invalid-connector-layout'],
    ['a group twice', { groups: [group(0), group(0)] }, 'invalid-connector-layout'],
    ['a group without layers', { groups: [group(0, { layerIds: [] })] }, 'invalid-connector-layout'],
    ['pages of no bytes', { groups: [group(0, { pageBytes: 0 })] }, 'invalid-connector-layout'],
    ['a group that is none', { groups: [group(0.5)] }, 'invalid-connector-layout'],
    ['a private group', { groups: [group(0, { lifecycle: fullAttention({ policy: 'private' }) })] }, 'private-group'],
  ])('%s is refused, and a better layout is taken afterwards', (_, change, expected) => {
    expect(() => connector.register({ ...layout, ...change }, memory)).toThrow(code(expected));
    connector.register(layout, memory);
  });

  test('comes once, before everything else and not after close', async () => {
    expect(() => connector.scheduler).toThrow(code('unsupported-call'));
    expect(() => connector.worker).toThrow(code('unsupported-call'));
    expect(() => connector.takeEvents()).toThrow(code('unsupported-call'));
    connector.register(layout, memory);
    expect(() => connector.register(layout, memory)).toThrow(code('call-order'));
    await connector.close();
    await connector.close();
    expect(() => connector.register(layout, memory)).toThrow(code('plugin-closed'));
    await expect(connector.resetCache()).rejects.toEqual(code('plugin-closed'));
  });

  test('events are asked only of connectors that tell of some', () => {
    const quiet = checkedConnector(
      Object.defineProperty(new MemoryConnector(), 'supports', { value: { ...inner.supports, events: false } }),
    );
    quiet.register(layout, memory);
    expect(() => quiet.takeEvents()).toThrow(code('unsupported-call'));
  });
});

describe('the scheduler', () => {
  let scheduler: ConnectorScheduler;
  beforeEach(() => {
    connector.register(layout, memory);
    ({ scheduler } = connector);
  });

  /** A text that the store has, and its request, asked about. */
  async function offered(): Promise<number> {
    scheduler.onNewRequest({ id: 1, tokens });
    const { worker } = connector;
    for (const end of [4, 8]) {
      scheduler.willWrite(1, blocks, end);
      worker.beginStep(scheduler.buildStep());
      worker.startLoad();
      for (const layer of [0, 1]) worker.saveLayer(layer);
      await worker.waitForSave();
      worker.endStep();
    }
    scheduler.requestFinished(1, blocks);
    // The store has it when somebody finds it.
    let id = 100;
    await vi.waitUntil(async () => {
      const found = await known(++id);
      scheduler.requestFinished(id, blocks);
      return found > 0;
    }, 30_000);
    return known(2);
  }

  /** Tokens that a new request is offered. */
  async function known(id: number): Promise<number> {
    scheduler.onNewRequest({ id, tokens });
    const answer = await vi.waitUntil(() => {
      const lookup = scheduler.lookup(id, 0);
      return lookup.state === 'known' ? lookup : undefined;
    }, 30_000);
    return answer.tokens;
  }

  test('takes no request twice, unless it has finished', () => {
    expect(() => scheduler.onNewRequest({ id: -1, tokens })).toThrow(code('invalid-connector-argument'));
    scheduler.onNewRequest({ id: 1, tokens });
    expect(() => scheduler.onNewRequest({ id: 1, tokens })).toThrow(code('call-order'));
    scheduler.requestFinished(1, blocks);
    scheduler.onNewRequest({ id: 1, tokens });
  });

  test('is asked only about requests that it knows', () => {
    for (const call of [
      () => scheduler.lookup(1, 0),
      () => scheduler.allocated(1, blocks, 0, 0),
      () => scheduler.willWrite(1, blocks, 4),
      () => scheduler.requestFinished(1, []),
    ])
      expect(call).toThrow(code('unknown-request'));
  });

  test.each<[string, BlocksByGroup]>([
    ['too few blocks', [[0, 1], undefined, [0]]],
    ['a group missing', [[0, 1, 2]]],
    ['a group that was not registered', [[0, 1, 2], [0], [0]]],
    ['a slot twice', [[0, 1, 1], undefined, [0]]],
    ['a slot below -1', [[0, 1, -2], undefined, [0]]],
    ['half a slot', [[0, 1, 1.5], undefined, [0]]],
    ['several pages of one state', [[0, 1, 2], undefined, [0, 1]]],
  ])('blocks with %s are refused', (_, bad) => {
    scheduler.onNewRequest({ id: 1, tokens });
    expect(() => scheduler.willWrite(1, bad, 9)).toThrow(code('invalid-connector-argument'));
    expect(() => scheduler.allocated(1, bad, 9, 0)).toThrow(code('invalid-connector-argument'));
    scheduler.willWrite(1, [[-1, -1, 2], undefined, [-1]], 9);
  });

  test('counts of tokens are whole, and no more than there are', () => {
    scheduler.onNewRequest({ id: 1, tokens });
    for (const bad of [-1, 0.5, 10]) {
      expect(() => scheduler.lookup(1, bad)).toThrow(code('invalid-connector-argument'));
      expect(() => scheduler.allocated(1, blocks, bad, 0)).toThrow(code('invalid-connector-argument'));
      expect(() => scheduler.allocated(1, blocks, 0, bad)).toThrow(code('invalid-connector-argument'));
    }
    expect(() => scheduler.willWrite(1, blocks, -1)).toThrow(code('invalid-connector-argument'));
  });

  test('loads what it offered, all of it or nothing, once', async () => {
    expect(await offered()).toBe(8);
    expect(() => scheduler.allocated(2, blocks, 4, 4)).toThrow(code('call-order'));
    expect(() => scheduler.allocated(2, blocks, 0, 4)).toThrow(code('invalid-connector-argument'));
    scheduler.allocated(2, blocks, 0, 8);
    expect(() => scheduler.allocated(2, blocks, 0, 8)).toThrow(code('call-order'));
  });

  test('a request that nobody asked about has nothing to load', async () => {
    await offered();
    scheduler.onNewRequest({ id: 3, tokens });
    expect(() => scheduler.allocated(3, blocks, 0, 8)).toThrow(code('call-order'));
    scheduler.allocated(3, blocks, 0, 0);
  });

  test('a request that waits for its load is in no step until it was reported', async () => {
    await offered();
    scheduler.allocated(2, blocks, 0, 8);
    expect(() => scheduler.willWrite(2, blocks, 9)).toThrow(code('call-order'));
    expect(() => scheduler.lookup(2, 0)).toThrow(code('call-order'));
    expect(() => scheduler.allocated(2, blocks, 0, 0)).toThrow(code('call-order'));
    scheduler.update({ finished: { saved: [], loaded: [2] }, failedPages: [] });
    scheduler.allocated(2, blocks, 0, 0);
    scheduler.willWrite(2, blocks, 9);
  });

  test('is not called after close', async () => {
    scheduler.onNewRequest({ id: 1, tokens });
    await connector.close();
    for (const call of [
      () => scheduler.onNewRequest({ id: 2, tokens }),
      () => scheduler.lookup(1, 0),
      () => scheduler.buildStep(),
      () => scheduler.update({ finished: { saved: [], loaded: [] }, failedPages: [] }),
      () => scheduler.requestFinished(1, blocks),
    ])
      expect(call).toThrow(code('plugin-closed'));
  });
});

describe('the worker', () => {
  let worker: ConnectorWorker;
  beforeEach(() => {
    connector.register(layout, memory);
    ({ worker } = connector);
  });
  const begin = () => worker.beginStep(connector.scheduler.buildStep());

  test('goes through a step in its order, again and again', async () => {
    for (let i = 0; i < 2; i++) {
      begin();
      await worker.preempted([1, 2]);
      worker.startLoad();
      for (const layer of [0, 1]) {
        await worker.waitForLayer(layer);
        worker.saveLayer(layer);
      }
      await worker.waitForSave();
      await worker.waitForSave();
      expect(worker.finished([])).toEqual({ saved: [], loaded: [] });
      expect(worker.failedPages()).toEqual([]);
      worker.endStep();
    }
  });

  test('does nothing outside of a step', async () => {
    await expect(worker.preempted([])).rejects.toEqual(code('call-order'));
    await expect(worker.waitForLayer(0)).rejects.toEqual(code('call-order'));
    await expect(worker.waitForSave()).rejects.toEqual(code('call-order'));
    for (const call of [
      () => worker.startLoad(),
      () => worker.saveLayer(0),
      () => worker.finished([]),
      () => worker.failedPages(),
      () => worker.endStep(),
    ])
      expect(call).toThrow(code('call-order'));
  });

  test('takes no call too early, too late or twice', async () => {
    begin();
    expect(begin).toThrow(code('call-order'));
    await expect(worker.waitForLayer(0)).rejects.toEqual(code('call-order'));
    worker.startLoad();
    expect(() => worker.startLoad()).toThrow(code('call-order'));
    await expect(worker.preempted([])).rejects.toEqual(code('call-order'));
    worker.saveLayer(0);
    expect(() => worker.saveLayer(0)).toThrow(code('call-order'));
    expect(() => worker.endStep()).toThrow(code('call-order'));
    expect(() => worker.finished([])).toThrow(code('call-order'));
    await worker.waitForSave();
    expect(() => worker.saveLayer(1)).toThrow(code('call-order'));
    await expect(worker.waitForLayer(1)).rejects.toEqual(code('call-order'));
    worker.endStep();
  });

  test('layers and requests are ones that there are', async () => {
    begin();
    await expect(worker.preempted([1, 1])).rejects.toEqual(code('invalid-connector-argument'));
    await expect(worker.preempted([-1])).rejects.toEqual(code('invalid-connector-argument'));
    worker.startLoad();
    await expect(worker.waitForLayer(7)).rejects.toEqual(code('invalid-connector-argument'));
    expect(() => worker.saveLayer(7)).toThrow(code('invalid-connector-argument'));
    await worker.waitForSave();
    expect(() => worker.finished([0.5])).toThrow(code('invalid-connector-argument'));
  });

  test('a wait that fails leaves the step where it is', async () => {
    begin();
    worker.startLoad();
    await expect(worker.waitForSave({ signal: AbortSignal.abort(new Error('no')) })).rejects.toThrow('no');
    expect(() => worker.endStep()).toThrow(code('call-order'));
    await worker.waitForSave();
    worker.endStep();
    await connector.close();
    expect(begin).toThrow(code('plugin-closed'));
  });
});
