import {
  type CallOptions,
  type ConnectorEvent,
  type ConnectorWorker,
  type FailedPage,
  type FinishedTransfers,
  interrupted,
} from '@bufferwise/adapter-kit';
import type { LayerGroupId } from '@bufferwise/core-policy';
import type { ConnectorOrders } from './connector-orders.ts';
import { type MoverOptions, PageLoader } from './page-loader.ts';
import { PageSaver } from './page-saver.ts';

/** The moving side of `PageStoreConnector`. */
export class StoreWorker implements ConnectorWorker {
  readonly #options: Omit<MoverOptions, 'tell'>;
  readonly #loader: PageLoader;
  readonly #saver: PageSaver;
  readonly #groupsOf = new Map<number, Set<LayerGroupId>>();
  readonly #layersOf: ReadonlyMap<LayerGroupId, readonly number[]>;
  #orders: ConnectorOrders = { loads: [], saves: [], cancelled: [] };
  readonly #written = new Set<number>();
  /** Requests that have finished and were not told as saved, with the time of that. */
  readonly #announced = new Map<number, number>();
  #events: ConnectorEvent[] = [];

  constructor(options: Omit<MoverOptions, 'tell'>) {
    const tell = (event: ConnectorEvent) => {
      this.#events.push(event);
    };
    this.#options = options;
    this.#loader = new PageLoader({ ...options, tell });
    this.#saver = new PageSaver({ ...options, tell });
    this.#layersOf = new Map(options.layout.groups.map(({ groupId, layerIds }) => [groupId, layerIds]));
    for (const { groupId, layerIds } of options.layout.groups) {
      for (const layerId of layerIds) this.#groupsOf.set(layerId, (this.#groupsOf.get(layerId) ?? new Set()).add(groupId));
    }
  }

  beginStep(orders: unknown): void {
    this.#orders = orders as ConnectorOrders;
    this.#written.clear();
    for (const id of this.#orders.cancelled) this.#loader.stop(id);
    this.#saver.begin(this.#orders.saves);
  }

  async preempted(ids: readonly number[]): Promise<void> {
    this.#saver.drop(ids);
    for (const id of ids) this.#loader.stop(id);
    this.#orders = { ...this.#orders, loads: this.#orders.loads.filter(({ id }) => !ids.includes(id)) };
    await this.#saver.allRead();
  }

  startLoad(): void {
    for (const load of this.#orders.loads) this.#loader.start(load);
  }

  async waitForLayer(layerId: number, options?: CallOptions): Promise<void> {
    options?.signal?.throwIfAborted();
    const groupIds = this.#groupsOf.get(layerId);
    if (groupIds !== undefined) await interrupted(this.#loader.inStep(groupIds), options?.signal);
  }

  saveLayer(layerId: number): void {
    this.#written.add(layerId);
    this.#saver.read((groupId) => this.#layersOf.get(groupId)?.every((id) => this.#written.has(id)) ?? false);
  }

  async waitForSave(options?: CallOptions): Promise<void> {
    options?.signal?.throwIfAborted();
    this.#saver.read(() => true);
    await interrupted(this.#saver.allRead(), options?.signal);
  }

  finished(announced: readonly number[]): FinishedTransfers {
    const { clock, timeouts } = this.#options.settings;
    const now = clock.now();
    for (const id of announced) this.#announced.set(id, now);
    const saved = [...this.#announced].flatMap(([id, since]) => {
      const isKept = this.#loader.isLoading(id) || (this.#saver.isSaving(id) && now - since < timeouts.keepFinishedMs);
      return isKept ? [] : [id];
    });
    for (const id of saved) this.#announced.delete(id);
    return { saved, loaded: this.#loader.takeLoaded() };
  }

  failedPages(): readonly FailedPage[] {
    return this.#loader.takeFailed();
  }

  endStep(): void {
    this.#orders = { loads: [], saves: [], cancelled: [] };
  }

  takeEvents(): ConnectorEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /** Settles when nothing is under way any more. */
  async settled(): Promise<void> {
    await Promise.all([this.#loader.settled(), this.#saver.settled()]);
  }
}
