import type { ConnectorEvent, ConnectorLayout, ConnectorMemory, FailedPage, PageStore } from '@bufferwise/adapter-kit';
import type { LayerGroupId } from '@bufferwise/core-policy';
import { inTime } from '../clock.ts';
import { ByteGate } from './byte-gate.ts';
import type { ConnectorSettings } from './connector-options.ts';
import type { LoadOrder, PageOrder } from './connector-orders.ts';
import type { GroupCounters } from './connector-statistics.ts';

/** What the moving side of a connector works with. */
export interface MoverOptions {
  readonly store: PageStore;
  readonly layout: ConnectorLayout;
  readonly memory: ConnectorMemory;
  readonly settings: ConnectorSettings;
  readonly counters: GroupCounters;
  /** Aborted when the connector closes. */
  readonly closing: AbortSignal;
  tell(event: ConnectorEvent): void;
}

/** A load of one request. */
interface Load {
  readonly id: number;
  readonly async: boolean;
  /** When the pages of a group are there, or have failed. */
  readonly groups: Map<LayerGroupId, Promise<unknown>>;
  /** Nothing more is written: the pages may be somebody else's. */
  isStopped: boolean;
}

/** The answer for one page: its bytes, or null when they are not to be had. */
type Fetched = Uint8Array | null;

/** Brings pages from a store into memory, in the order in which layers need them; a page that several requests want is asked for once. */
export class PageLoader {
  readonly #options: MoverOptions;
  readonly #gate: ByteGate;
  readonly #loads = new Set<Load>();
  /** Pages that are being asked for, by name. */
  readonly #fetching = new Map<string, Promise<Fetched>>();
  readonly #background = new Set<Promise<unknown>>();
  #loaded: number[] = [];
  #failed: FailedPage[] = [];

  constructor(options: MoverOptions) {
    this.#options = options;
    this.#gate = new ByteGate(options.settings.budget.loadingBytes);
  }

  start({ id, async, pages }: LoadOrder): void {
    const load: Load = { id, async, groups: new Map(), isStopped: false };
    // A model runs through its layers from the first on.
    const inOrder = [...this.#options.layout.groups].sort((a, b) => a.layerIds[0] - b.layerIds[0]);
    for (const { groupId, pageBytes } of inOrder) {
      const ofGroup = pages.filter((page) => page.groupId === groupId);
      if (ofGroup.length > 0) load.groups.set(groupId, this.#loadGroup(load, ofGroup, pageBytes));
    }
    this.#loads.add(load);
    void Promise.all(load.groups.values()).then(() => this.#end(load));
  }

  /** Ends the loads of a request: nothing of them is written any more. */
  stop(id: number): void {
    for (const load of this.#loads) {
      if (load.id !== id) continue;
      load.isStopped = true;
      this.#end(load);
    }
  }

  isLoading(id: number): boolean {
    return [...this.#loads].some((load) => load.id === id);
  }

  /** Settles when the pages of some groups are there that steps wait for, or have failed. */
  async inStep(groupIds: ReadonlySet<LayerGroupId>): Promise<void> {
    const mine = [...this.#loads].filter(({ async }) => !async);
    await Promise.all(
      mine.flatMap(({ groups }) => [...groups].flatMap(([groupId, done]) => (groupIds.has(groupId) ? [done] : []))),
    );
  }

  takeLoaded(): number[] {
    const loaded = this.#loaded;
    this.#loaded = [];
    return loaded;
  }

  takeFailed(): FailedPage[] {
    const failed = this.#failed;
    this.#failed = [];
    return failed;
  }

  /** Settles when nothing is under way any more. */
  async settled(): Promise<void> {
    while (this.#loads.size + this.#background.size > 0)
      await Promise.all([...this.#background, ...[...this.#loads].flatMap(({ groups }) => [...groups.values()])]);
  }

  #end(load: Load): void {
    if (this.#loads.delete(load) && load.async) this.#loaded.push(load.id);
  }

  async #loadGroup(load: Load, pages: readonly PageOrder[], pageBytes: number): Promise<void> {
    const { maxBatch } = this.#options.store.limits;
    const chunks: Promise<void>[] = [];
    for (let i = 0; i < pages.length; i += maxBatch) chunks.push(this.#loadChunk(load, pages.slice(i, i + maxBatch), pageBytes));
    await Promise.all(chunks);
  }

  async #loadChunk(load: Load, pages: readonly PageOrder[], pageBytes: number): Promise<void> {
    const found = await Promise.all(this.#fetch(pages, pageBytes));
    if (load.isStopped) return;
    const { groupId } = pages[0];
    const whole = pages.flatMap(({ slot }, i) => (found[i] === null ? [] : [{ slot, bytes: found[i] }]));
    const lost = pages.filter((_, i) => found[i] === null);
    try {
      const slots = whole.map(({ slot }) => slot);
      if (whole.length > 0)
        this.#options.memory.writePages(
          groupId,
          slots,
          whole.map(({ bytes }) => bytes),
        );
      this.#options.counters.count('loaded', groupId, whole.length);
    } catch {
      // Memory that takes no page: its user will find out, and none of these may be read.
      lost.splice(0, lost.length, ...pages);
    }
    this.#options.counters.count('failed', groupId, lost.length);
    this.#failed.push(...lost.map(({ slot }) => ({ groupId, slot })));
  }

  /** Pages of one group, each asked for by the first that wants it. */
  #fetch(pages: readonly PageOrder[], pageBytes: number): Promise<Fetched>[] {
    const asked = pages.filter(({ name }) => !this.#fetching.has(name.key));
    if (asked.length > 0) {
      const batch = this.#ask(asked, pageBytes);
      asked.forEach(({ name: { key } }, i) => {
        this.#fetching.set(
          key,
          batch.then((found) => {
            this.#fetching.delete(key);
            return found[i];
          }),
        );
      });
    }
    return pages.map(({ name }) => this.#fetching.get(name.key) as Promise<Fetched>);
  }

  /** One call of the store. Pages that it answered with nothing good are taken out of it. Never rejects. */
  async #ask(pages: readonly PageOrder[], pageBytes: number): Promise<readonly Fetched[]> {
    const { store, settings, closing } = this.#options;
    const bytes = pages.length * pageBytes;
    await this.#gate.enter(bytes);
    try {
      const names = pages.map(({ name }) => name);
      const found = await inTime(settings.clock, settings.timeouts.loadMs, closing, (signal) => store.get(names, { signal }));
      if (found === undefined) return pages.map(() => null);
      const good = found.map((page) => (page?.length === pageBytes ? page : null));
      this.#forget(pages.filter((_, i) => good[i] === null));
      return good;
    } finally {
      this.#gate.leave(bytes);
    }
  }

  /** The store said that these were there, and they are not, or are damaged: nobody is to be told so again. */
  #forget(pages: readonly PageOrder[]): void {
    if (pages.length === 0) return;
    const { store, settings, closing, tell } = this.#options;
    const names = pages.map(({ name }) => name);
    const forgetting = inTime(settings.clock, settings.timeouts.saveMs, closing, (signal) =>
      store.delete(names, { signal }),
    ).then((answer) => {
      this.#background.delete(forgetting);
      if (answer !== undefined) tell({ type: 'removed', groupId: pages[0].groupId, keys: pages.map(({ block }) => block) });
    });
    this.#background.add(forgetting);
  }
}
