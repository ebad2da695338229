import { CallGate } from '../call-gate.ts';
import type {
  ConnectorEvent,
  ConnectorLayout,
  ConnectorMemory,
  ConnectorScheduler,
  ConnectorWorker,
  KvConnector,
} from '../connector/kv-connector.ts';
import { AdapterError } from '../errors.ts';
import { deleteByPrefix } from '../page-store/delete-by-prefix.ts';
import type { PageStore } from '../page-store/page-store.ts';
import type { CallOptions } from '../plugin.ts';
import { MemoryPageStore } from './memory-page-store.ts';
import { MemoryScheduler } from './memory-scheduler.ts';
import { MemoryWorker } from './memory-worker.ts';

export interface MemoryConnectorOptions {
  /** Where pages are kept. It stays the caller's, who closes it after the connector. Default: memory of its own. */
  readonly store?: PageStore;
  /** Requests wait for their loads outside of steps. Default true; false: inside, layer by layer. */
  readonly asyncLoad?: boolean;
}

/**
 * Keeps the whole blocks of every request in a page store, and loads the longest prefix that is there. Both sides are in one process: for
 * tests, for engines that have one, and the reference for other connectors.
 */
export class MemoryConnector implements KvConnector {
  readonly specVersion = 'v1';
  readonly name = 'memory connector';
  readonly supports: { readonly asyncLoad: boolean; readonly asyncSave: true; readonly snapshots: true; readonly events: true };
  readonly #gate = new CallGate(this.name);
  readonly #store: PageStore;
  #sides: { scheduler: MemoryScheduler; worker: MemoryWorker } | undefined;

  constructor({ store = new MemoryPageStore(), asyncLoad = true }: MemoryConnectorOptions = {}) {
    this.#store = store;
    this.supports = { asyncLoad, asyncSave: true, snapshots: true, events: true };
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
    this.#sides = {
      scheduler: new MemoryScheduler(this.#store, layout, this.supports),
      worker: new MemoryWorker(this.#store, layout, memory),
    };
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

  close(): Promise<void> {
    return this.#gate.close(() => this.#sides?.worker.close());
  }

  #registered(): { scheduler: MemoryScheduler; worker: MemoryWorker } {
    if (this.#sides === undefined)
      throw new AdapterError('unsupported-call', `${this.name}: it knows no layout yet; call \`register\` first`);
    return this.#sides;
  }
}
