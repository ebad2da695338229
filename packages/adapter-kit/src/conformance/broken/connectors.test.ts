import type { ConnectorScheduler, ConnectorWorker, KvConnector } from '../../connector/kv-connector.ts';
import type { MemoryOrders } from '../../memory/connector-orders.ts';
import type { KvConnectorHarness } from '../connector/harness.ts';
import { memoryConnectorHarness } from '../connector/memory-connector-rig.ts';
import { kvConnectorSuite } from '../connector/suite.ts';
import { type Broken, testSuiteCatches } from './catches-rig.ts';

interface Faults {
  connector?: (right: KvConnector) => Partial<KvConnector>;
  scheduler?: (right: ConnectorScheduler) => Partial<ConnectorScheduler>;
  worker?: (right: ConnectorWorker) => Partial<ConnectorWorker>;
}

/** A memory connector with a fault on one of its sides. */
function withFault({ connector = () => ({}), scheduler = () => ({}), worker = () => ({}) }: Faults): KvConnectorHarness {
  const wrap = (right: KvConnector): KvConnector => {
    let sides: Pick<KvConnector, 'scheduler' | 'worker'> | undefined;
    // Made when the right one knows its layout, and once: faults may remember.
    const both = () => {
      sides ??= { scheduler: schedulerOf(right.scheduler, scheduler), worker: workerOf(right.worker, worker) };
      return sides;
    };
    const all: KvConnector = {
      specVersion: right.specVersion,
      name: right.name,
      supports: right.supports,
      get scheduler() {
        return both().scheduler;
      },
      get worker() {
        return both().worker;
      },
      register: (layout, memory) => right.register(layout, memory),
      resetCache: (options) => right.resetCache(options),
      takeEvents: () => right.takeEvents(),
      close: () => right.close(),
    };
    return Object.defineProperties(all, Object.getOwnPropertyDescriptors(connector(right)));
  };
  return { ...memoryConnectorHarness(true, wrap), patienceMs: 300 };
}

function schedulerOf(right: ConnectorScheduler, fault: NonNullable<Faults['scheduler']>): ConnectorScheduler {
  return {
    onNewRequest: (request) => right.onNewRequest(request),
    lookup: (id, computedTokens) => right.lookup(id, computedTokens),
    allocated: (id, blocks, computedTokens, externalTokens) => right.allocated(id, blocks, computedTokens, externalTokens),
    willWrite: (id, blocks, writtenTokens) => right.willWrite(id, blocks, writtenTokens),
    buildStep: () => right.buildStep(),
    update: (report) => right.update(report),
    requestFinished: (id, blocks) => right.requestFinished(id, blocks),
    ...fault(right),
  };
}

function workerOf(right: ConnectorWorker, fault: NonNullable<Faults['worker']>): ConnectorWorker {
  return {
    beginStep: (orders) => right.beginStep(orders),
    preempted: (ids) => right.preempted(ids),
    startLoad: () => right.startLoad(),
    waitForLayer: (layerId, options) => right.waitForLayer(layerId, options),
    saveLayer: (layerId) => right.saveLayer(layerId),
    waitForSave: (options) => right.waitForSave(options),
    finished: (announced) => right.finished(announced),
    failedPages: () => right.failedPages(),
    endStep: () => right.endStep(),
    ...fault(right),
  };
}

const broken: Broken<KvConnectorHarness>[] = [
  {
    fault: 'offers pages without those of its first group',
    breaks: 'loads what was saved, into the slots of whoever asks',
    harness: withFault({
      scheduler: (right) => ({
        lookup(id, computedTokens) {
          const answer = right.lookup(id, computedTokens);
          return answer.state === 'known' ? { ...answer, groups: answer.groups.slice(1) } : answer;
        },
      }),
    }),
  },
  {
    fault: 'takes each lookup for a reservation',
    breaks: 'answers a lookup as often as it is asked, and promises nothing by it',
    harness: withFault({
      scheduler: (right) => {
        const asked = new Map<number, number>();
        return {
          lookup(id, computedTokens) {
            const answer = right.lookup(id, computedTokens);
            if (answer.state === 'pending') return answer;
            asked.set(id, (asked.get(id) ?? 0) + 1);
            return (asked.get(id) ?? 0) > 4 ? { state: 'known', tokens: 0, async: false, groups: [] } : answer;
          },
        };
      },
    }),
  },
  {
    fault: 'loads a prefix from its beginning, whatever is there',
    breaks: 'loads only what is not there yet',
    harness: withFault({
      scheduler: (right) => ({
        allocated: (id, blocks, computedTokens, externalTokens) =>
          right.allocated(
            id,
            blocks,
            externalTokens === 0 ? computedTokens : 0,
            externalTokens === 0 ? 0 : computedTokens + externalTokens,
          ),
      }),
    }),
  },
  {
    fault: 'leaves adapters out of its names',
    breaks: 'finds nothing of another scope, model or text',
    harness: withFault({
      scheduler: (right) => ({
        onNewRequest: (request) => right.onNewRequest({ ...request, scope: { salt: request.scope?.salt } }),
      }),
    }),
  },
  {
    fault: 'takes whatever group it is given',
    breaks: 'refuses private groups',
    harness: withFault({
      connector: (right) => ({
        register: (layout, memory) =>
          right.register({ ...layout, groups: layout.groups.filter(({ lifecycle }) => lifecycle.policy !== 'private') }, memory),
      }),
    }),
  },
  {
    fault: 'takes a hole for slot 0',
    breaks: 'leaves holes alone, when it saves and when it loads',
    harness: withFault({
      scheduler: (right) => ({
        willWrite: (id, blocks, writtenTokens) =>
          right.willWrite(
            id,
            blocks.map((slots) => slots?.map((slot) => Math.max(0, slot))),
            writtenTokens,
          ),
      }),
    }),
  },
  {
    fault: 'reports the first failed page only',
    breaks: 'reports pages that could not be loaded, each of them, and offers them no more',
    harness: withFault({ worker: (right) => ({ failedPages: () => right.failedPages().slice(0, 1) }) }),
  },
  {
    fault: 'keeps the orders of the step before',
    breaks: 'orders nothing twice',
    along: ['saves the bytes of a preempted request or none, never those of the next owner'],
    harness: withFault({
      scheduler: (right) => {
        let before: MemoryOrders['saves'] = [];
        return {
          buildStep() {
            const orders = right.buildStep() as MemoryOrders;
            const saves = [...before, ...orders.saves];
            before = orders.saves;
            return { ...orders, saves };
          },
        };
      },
    }),
  },
  {
    fault: 'reads some time after it said that it had',
    breaks: 'has read what it saves when waitForSave settles',
    along: ['orders nothing twice'],
    harness: withFault({
      connector: (right) => ({
        register: (layout, memory) =>
          right.register(layout, {
            readPages: async (groupId, slots) => {
              await new Promise((resolve) => setTimeout(resolve, 2));
              return memory.readPages(groupId, slots);
            },
            writePages: (groupId, slots, pages) => memory.writePages(groupId, slots, pages),
          }),
      }),
      worker: (right) => ({
        async waitForSave(options) {
          void right.waitForSave(options);
        },
      }),
    }),
  },
  {
    fault: 'does not hear of preemptions',
    breaks: 'saves the bytes of a preempted request or none, never those of the next owner',
    harness: withFault({ worker: () => ({ preempted: async () => {} }) }),
  },
  {
    fault: 'gives pages back twice',
    breaks: 'gives back the pages of every finished request, once',
    harness: withFault({
      worker: (right) => ({
        finished(announced) {
          const { saved, loaded } = right.finished(announced);
          return { saved: [...saved, ...saved], loaded };
        },
      }),
    }),
  },
  {
    fault: 'takes the state inside of a block for that at its beginning',
    breaks: 'offers only what ends where recurrent state was kept',
    harness: withFault({
      scheduler: (right) => ({
        willWrite: (id, blocks, writtenTokens) => right.willWrite(id, blocks, writtenTokens - (writtenTokens % 4)),
      }),
    }),
  },
  {
    fault: 'tells of everything again and again',
    breaks: 'tells of each block once, group by group',
    harness: withFault({
      connector: (right) => {
        const told: ReturnType<KvConnector['takeEvents']>[number][] = [];
        return {
          takeEvents() {
            told.push(...right.takeEvents());
            return [...told];
          },
        };
      },
    }),
  },
  {
    fault: 'says that it forgot, and did not',
    breaks: 'has nothing of the model after resetCache, for nobody',
    harness: withFault({
      connector: (right) => {
        let closed = false;
        return {
          async resetCache(options) {
            options?.signal?.throwIfAborted();
            return closed ? right.resetCache(options) : true;
          },
          close() {
            closed = true;
            return right.close();
          },
        };
      },
    }),
  },
  {
    fault: 'answers for requests that it does not know',
    breaks: 'knows no request that it was not told of',
    harness: withFault({
      scheduler: (right) => ({
        lookup: (id, computedTokens) =>
          id === 99 ? { state: 'known', tokens: 0, async: false, groups: [] } : right.lookup(id, computedTokens),
      }),
    }),
  },
  {
    fault: 'ignores an aborted signal',
    breaks: 'begins no call whose signal is aborted, and rejects with its reason',
    harness: withFault({ connector: (right) => ({ resetCache: () => right.resetCache() }) }),
  },
  {
    fault: 'answers after close',
    breaks: 'rejects every call after close',
    harness: withFault({
      connector: (right) => ({
        resetCache: (options) =>
          right.resetCache(options).catch((error) => (error.code === 'plugin-closed' ? false : Promise.reject(error))),
      }),
    }),
  },
  {
    fault: 'leaves a call hanging when it closes',
    breaks: 'settles every call that is under way when it closes',
    harness: withFault({
      connector: (right) => {
        let closed = false;
        return {
          async resetCache(options) {
            const wasOpen = !closed;
            try {
              return await right.resetCache(options);
            } finally {
              if (wasOpen && closed) await new Promise(() => {});
            }
          },
          close() {
            closed = true;
            return right.close();
          },
        };
      },
    }),
  },
  {
    fault: 'cannot be closed twice',
    breaks: 'may be closed again, during the first close and after it',
    harness: {
      ...withFault({
        connector: (right) => {
          let closed = false;
          return {
            async close() {
              if (closed) throw new Error('closed already');
              closed = true;
              await right.close();
            },
          };
        },
      }),
      destroy: () => {},
    },
  },
];

testSuiteCatches(kvConnectorSuite, { ...memoryConnectorHarness(true), patienceMs: 2000 }, broken);
