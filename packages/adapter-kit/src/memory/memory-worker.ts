import type {
  ConnectorEvent,
  ConnectorLayout,
  ConnectorMemory,
  ConnectorWorker,
  FailedPage,
  FinishedTransfers,
} from '../connector/kv-connector.ts';
import { AdapterError } from '../errors.ts';
import { interrupted } from '../interrupted.ts';
import type { PageStore } from '../page-store/page-store.ts';
import type { CallOptions } from '../plugin.ts';
import type { MemoryOrders, PageOrder, RequestOrder } from './connector-orders.ts';

/** A load of one request. */
interface Load {
  readonly id: number;
  readonly async: boolean;
  readonly pages: readonly PageOrder[];
  readonly done: Promise<void>;
}

/** The moving side of `MemoryConnector`. */
export class MemoryWorker implements ConnectorWorker {
  readonly #store: PageStore;
  readonly #memory: ConnectorMemory;
  readonly #layersOf: ReadonlyMap<number, readonly number[]>;
  readonly #pageBytes: ReadonlyMap<number, number>;
  #orders: MemoryOrders = { loads: [], saves: [] };
  /** Saves of the step whose bytes were not read yet, and layers that have written. */
  #unread: RequestOrder[] = [];
  readonly #written = new Set<number>();
  readonly #reading = new Set<Promise<void>>();
  readonly #storing = new Set<Promise<void>>();
  /** Saves under way, by request. */
  readonly #saving = new Map<number, number>();
  #loads: Load[] = [];
  #loaded: number[] = [];
  #failed: FailedPage[] = [];
  readonly #announced = new Set<number>();
  #events: ConnectorEvent[] = [];
  readonly #closing = new AbortController();

  constructor(store: PageStore, layout: ConnectorLayout, memory: ConnectorMemory) {
    this.#store = store;
    this.#memory = memory;
    this.#layersOf = new Map(layout.groups.map(({ groupId, layerIds }) => [groupId, layerIds]));
    this.#pageBytes = new Map(layout.groups.map(({ groupId, pageBytes }) => [groupId, pageBytes]));
  }

  beginStep(orders: unknown): void {
    this.#orders = orders as MemoryOrders;
    this.#written.clear();
    this.#unread = [...this.#orders.saves];
    for (const { id } of this.#unread) this.#saving.set(id, (this.#saving.get(id) ?? 0) + 1);
  }

  async preempted(ids: readonly number[]): Promise<void> {
    for (const { id } of this.#unread) if (ids.includes(id)) this.#ended(id);
    this.#unread = this.#unread.filter(({ id }) => !ids.includes(id));
    await Promise.all(this.#reading);
  }

  startLoad(): void {
    for (const { id, async, pages } of this.#orders.loads) {
      const done = this.#load(pages).then(() => {
        if (async) this.#loaded.push(id);
        this.#loads = this.#loads.filter((load) => load.done !== done);
      });
      this.#loads.push({ id, async, pages, done });
    }
  }

  async waitForLayer(layerId: number, options?: CallOptions): Promise<void> {
    options?.signal?.throwIfAborted();
    const mine = this.#loads.filter(
      ({ async, pages }) => !async && pages.some(({ groupId }) => this.#layersOf.get(groupId)?.includes(layerId)),
    );
    await interrupted(Promise.all(mine.map(({ done }) => done)), options?.signal);
  }

  saveLayer(layerId: number): void {
    this.#written.add(layerId);
    this.#read((groupId) => this.#layersOf.get(groupId)?.every((id) => this.#written.has(id)) ?? false);
  }

  async waitForSave(options?: CallOptions): Promise<void> {
    options?.signal?.throwIfAborted();
    this.#read(() => true);
    await interrupted(Promise.all(this.#reading), options?.signal);
  }

  finished(announced: readonly number[]): FinishedTransfers {
    for (const id of announced) this.#announced.add(id);
    const saved = [...this.#announced].filter((id) => !this.#saving.has(id) && !this.#loads.some((load) => load.id === id));
    for (const id of saved) this.#announced.delete(id);
    const loaded = this.#loaded;
    this.#loaded = [];
    return { saved, loaded };
  }

  failedPages(): readonly FailedPage[] {
    const failed = this.#failed;
    this.#failed = [];
    return failed;
  }

  endStep(): void {
    this.#orders = { loads: [], saves: [] };
  }

  takeEvents(): ConnectorEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /** Gives loads up, so that they fail, and finishes saves. */
  close(): Promise<void> {
    this.#closing.abort(new AdapterError('plugin-closed', 'memory connector was closed'));
    return this.settled();
  }

  /** Settles when nothing is under way any more. */
  async settled(): Promise<void> {
    while (this.#reading.size + this.#storing.size + this.#loads.length > 0)
      await Promise.all([...this.#reading, ...this.#storing, ...this.#loads.map(({ done }) => done)]);
  }

  /** Reads pages of groups that have been written: one copy of each, which is what is stored. */
  #read(isWritten: (groupId: number) => boolean): void {
    this.#unread = this.#unread.flatMap(({ id, pages }) => {
      const ready = pages.filter(({ groupId }) => isWritten(groupId));
      const rest = pages.filter(({ groupId }) => !isWritten(groupId));
      if (ready.length > 0) this.#save(id, ready, rest.length === 0);
      return rest.length === 0 ? [] : [{ id, pages: rest }];
    });
  }

  #save(id: number, pages: readonly PageOrder[], isLast: boolean): void {
    if (!isLast) this.#saving.set(id, (this.#saving.get(id) ?? 0) + 1);
    const bytes = Promise.all(
      [...groupsOf(pages)].map(async ([groupId, ofGroup]) => {
        const read = await this.#memory.readPages(
          groupId,
          ofGroup.map(({ slot }) => slot),
        );
        return ofGroup.map((page, i) => ({ page, bytes: read[i] }));
      }),
    );
    track(this.#reading, bytes);
    // Whatever cannot be read or stored is not there later: a miss, and nothing worse.
    track(
      this.#storing,
      bytes.then((all) => this.#put(all.flat())).finally(() => this.#ended(id)),
    );
  }

  async #put(pages: readonly { page: PageOrder; bytes: Uint8Array }[]): Promise<void> {
    for (let i = 0; i < pages.length; i += this.#store.limits.maxBatch) {
      const batch = pages.slice(i, i + this.#store.limits.maxBatch);
      const outcomes = await this.#store.put(batch.map(({ page, bytes }) => ({ ...page.name, bytes })));
      batch.forEach(({ page: { groupId, block } }, j) => {
        if (outcomes[j].status === 'stored') this.#events.push({ type: 'stored', groupId, keys: [block] });
      });
    }
  }

  /** Gets pages and writes those that are whole; the others have failed. */
  async #load(pages: readonly PageOrder[]): Promise<void> {
    for (let i = 0; i < pages.length; i += this.#store.limits.maxBatch) {
      const batch = pages.slice(i, i + this.#store.limits.maxBatch);
      const names = batch.map(({ name }) => name);
      const found = await this.#store.get(names, { signal: this.#closing.signal }).catch(() => batch.map(() => null));
      batch.forEach(({ groupId, slot }, j) => {
        if (!this.#write(groupId, slot, found[j])) this.#failed.push({ groupId, slot });
      });
    }
  }

  /** @returns false when there is no such page, or no memory for it any more */
  #write(groupId: PageOrder['groupId'], slot: number, bytes: Uint8Array | null): boolean {
    if (bytes === null || bytes.length !== this.#pageBytes.get(groupId)) return false;
    try {
      this.#memory.writePages(groupId, [slot], [bytes]);
      return true;
    } catch {
      return false;
    }
  }

  #ended(id: number): void {
    const left = (this.#saving.get(id) ?? 1) - 1;
    if (left > 0) this.#saving.set(id, left);
    else this.#saving.delete(id);
  }
}

/** Keeps a promise in a set until it settles, however it does. */
function track(set: Set<Promise<void>>, promise: Promise<unknown>): void {
  const ended = promise.then(
    () => {},
    () => {},
  );
  set.add(ended);
  void ended.then(() => set.delete(ended));
}

function groupsOf(pages: readonly PageOrder[]): Map<PageOrder['groupId'], PageOrder[]> {
  const groups = new Map<PageOrder['groupId'], PageOrder[]>();
  for (const page of pages) groups.set(page.groupId, [...(groups.get(page.groupId) ?? []), page]);
  return groups;
}
