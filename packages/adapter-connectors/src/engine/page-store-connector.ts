import {
  AdapterError,
  CallGate,
  type CallOptions,
  type ConnectorEvent,
  type ConnectorLayout,
  type ConnectorMemory,
  type ConnectorScheduler,
  type ConnectorWorker,
  checkedPageStore,
  deleteByPrefix,
  type KvConnector,
  type PageStore,
} from '@bufferwise/adapter-kit';
import { encodedStore } from '../encoding/encoded-store.ts';
import { type ConnectorSettings, connectorSettings, type PageStoreConnectorOptions } from './connector-options.ts';
import { type ConnectorStatistics, GroupCounters } from './connector-statistics.ts';
import { StoreScheduler } from './store-scheduler.ts';
import { StoreWorker } from './store-worker.ts';

interface Sides {
  readonly scheduler: StoreScheduler;
  readonly worker: StoreWorker;
  readonly counters: GroupCounters;
}

/**
 * Keeps the whole blocks of requests in a page store, and loads the longest prefix that is there for all required groups.
 *
 * The store may be slow, full, down or damaged: that costs time within `timeouts` and pages that are computed again, and nothing else. Steps wait
 * for no store but where `asyncLoad: false` has them wait for their own loads, layer by layer. The store stays the caller's, who closes
 * it after the connector.
 */
export class PageStoreConnector implements KvConnector {
  readonly specVersion = 'v1';
  readonly name = 'page store connector';
  readonly supports: { readonly asyncLoad: boolean; readonly asyncSave: true; readonly snapshots: true; readonly events: true };
  readonly #gate = new CallGate(this.name);
  /** As it was given; once registered, what encodes pages in it where that was asked for. */
  #store: PageStore;
  readonly #settings: ConnectorSettings;
  #sides: Sides | undefined;

  /** @throws {ConnectorError} `invalid-option`; {AdapterError} `plugin-spec-version` on a store of another version */
  constructor(store: PageStore, options: PageStoreConnectorOptions = {}) {
    this.#store = checkedPageStore(store);
    this.#settings = connectorSettings(options);
    this.supports = { asyncLoad: this.#settings.asyncLoad, asyncSave: true, snapshots: true, events: true };
  }

  get scheduler(): ConnectorScheduler {
    return this.#registered().scheduler;
  }

  get worker(): ConnectorWorker {
    return this.#registered().worker;
  }

  register(layout: ConnectorLayout, memory: ConnectorMemory): void {
    this.#gate.check();
    const ofOne = layout.groups.find(({ lifecycle }) => lifecycle.policy === 'private');
    if (ofOne !== undefined)
      throw new AdapterError(
        'private-group',
        `${this.name}: group ${ofOne.groupId} is private, and its pages are their request's alone; leave it out`,
      );
    const { encoding } = this.#settings;
    if (encoding !== null && this.#sides === undefined)
      this.#store = checkedPageStore(encodedStore(this.#store, { layout, ...encoding }));
    const counters = new GroupCounters(layout.groups.map(({ groupId }) => groupId));
    const common = { store: this.#store, layout, settings: this.#settings, counters, closing: this.#gate.closing };
    this.#sides = { scheduler: new StoreScheduler(common), worker: new StoreWorker({ ...common, memory }), counters };
  }

  resetCache(options?: CallOptions): Promise<boolean> {
    return this.#gate.run(options, async () => {
      if (this.#store.list === undefined) return false;
      const { scheduler, worker } = this.#registered();
      await worker.settled();
      await deleteByPrefix(this.#store, scheduler.prefixes, options);
      scheduler.forget();
      return true;
    });
  }

  takeEvents(): readonly ConnectorEvent[] {
    return this.#registered().worker.takeEvents();
  }

  /** Where pages go, and come from: the store that was given, or, once registered with an `encoding`, what encodes them in it. */
  get store(): PageStore {
    return this.#store;
  }

  /** What became of pages, group by group. */
  statistics(): ConnectorStatistics {
    return this.#registered().counters.snapshot();
  }

  close(): Promise<void> {
    return this.#gate.close(() => this.#sides?.worker.settled());
  }

  #registered(): Sides {
    if (this.#sides === undefined)
      throw new AdapterError('unsupported-call', `${this.name}: it knows no layout yet; call \`register\` first`);
    return this.#sides;
  }
}
