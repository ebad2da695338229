import type { LayerGroupId } from '@bufferwise/core-policy';
import { inTime } from '../clock.ts';
import { ByteGate, ByteRate } from './byte-gate.ts';
import type { PageOrder, RequestOrder } from './connector-orders.ts';
import type { MoverOptions } from './page-loader.ts';

interface ReadPage extends PageOrder {
  readonly bytes: Uint8Array;
}

const NEVER = new AbortController().signal;

/** Brings pages from memory into a store: a copy of each as soon as it is written, and the store in its own time. */
export class PageSaver {
  readonly #options: MoverOptions;
  readonly #pageBytes: ReadonlyMap<LayerGroupId, number>;
  readonly #gate: ByteGate;
  readonly #rate: ByteRate;
  /** Pages on their way, by name. */
  readonly #underWay = new Set<string>();
  /** Saves of the step whose bytes were not read yet. */
  #unread: RequestOrder[] = [];
  readonly #reading = new Set<Promise<unknown>>();
  readonly #storing = new Set<Promise<void>>();
  /** Saves under way, by request. */
  readonly #ofRequest = new Map<number, number>();

  constructor(options: MoverOptions) {
    this.#options = options;
    const { layout, settings } = options;
    this.#pageBytes = new Map(layout.groups.map(({ groupId, pageBytes }) => [groupId, pageBytes]));
    this.#gate = new ByteGate(settings.budget.savingBytes);
    this.#rate = new ByteRate(settings.budget.savedBytesPerSecond, settings.clock);
  }

  begin(saves: readonly RequestOrder[]): void {
    this.#unread = [...saves];
  }

  /** Requests whose pages are about to be taken away: what was not read yet is not read any more. */
  drop(ids: readonly number[]): void {
    this.#unread = this.#unread.filter(({ id }) => !ids.includes(id));
  }

  /** Reads pages of groups that have been written: one copy of each, which is what is stored. */
  read(isWritten: (groupId: LayerGroupId) => boolean): void {
    this.#unread = this.#unread.flatMap(({ id, pages }) => {
      const ready = pages.filter(({ groupId }) => isWritten(groupId));
      const rest = pages.filter(({ groupId }) => !isWritten(groupId));
      for (const ofGroup of byGroup(ready)) this.#save(id, ofGroup);
      return rest.length === 0 ? [] : [{ id, pages: rest }];
    });
  }

  /** Settles when the bytes of all that is to be saved were read. */
  async allRead(): Promise<void> {
    await Promise.all(this.#reading);
  }

  isSaving(id: number): boolean {
    return this.#ofRequest.has(id) || this.#unread.some((order) => order.id === id);
  }

  /** Settles when nothing is under way any more. */
  async settled(): Promise<void> {
    while (this.#storing.size > 0) await Promise.all(this.#storing);
  }

  /** Saves pages of one group: those that are not on their way, as far as the budget goes. */
  #save(id: number, pages: readonly PageOrder[]): void {
    const { counters, memory } = this.#options;
    const { groupId } = pages[0];
    const pageBytes = this.#pageBytes.get(groupId) ?? 0;
    const fresh = pages.filter(({ name }) => !this.#underWay.has(name.key));
    const taken = fresh.filter(() => this.#gate.tryEnter(pageBytes));
    counters.count('present', groupId, pages.length - fresh.length);
    counters.count('overBudget', groupId, fresh.length - taken.length);
    if (taken.length === 0) return;
    for (const { name } of taken) this.#underWay.add(name.key);
    this.#ofRequest.set(id, (this.#ofRequest.get(id) ?? 0) + 1);
    const reading = memory
      .readPages(
        groupId,
        taken.map(({ slot }) => slot),
      )
      .then(
        (read) => taken.map((page, i): ReadPage => ({ ...page, bytes: read[i] })),
        () => null,
      );
    this.#reading.add(reading);
    const storing = reading
      .then((read) => {
        this.#reading.delete(reading);
        return this.#store(groupId, read ?? []);
      })
      .then((stored) => {
        counters.count('notStored', groupId, taken.length - stored);
        for (const { name } of taken) this.#underWay.delete(name.key);
        this.#gate.leave(taken.length * pageBytes);
        this.#ended(id);
        this.#storing.delete(storing);
      });
    this.#storing.add(storing);
  }

  /** Never rejects: what cannot be stored is not there later, a miss, and nothing worse. Answers how many are in the store. */
  async #store(groupId: LayerGroupId, pages: readonly ReadPage[]): Promise<number> {
    const { store, settings, counters, closing, tell } = this.#options;
    let inStore = 0;
    for (let i = 0; i < pages.length; i += store.limits.maxBatch) {
      const batch = pages.slice(i, i + store.limits.maxBatch);
      await this.#rate.pass(
        batch.reduce((sum, { bytes }) => sum + bytes.length, 0),
        closing,
      );
      const entries = batch.map(({ name, bytes }) => ({ ...name, bytes }));
      const outcomes = await inTime(settings.clock, settings.timeouts.saveMs, NEVER, (signal) => store.put(entries, { signal }));
      const statuses = batch.map((_, j) => outcomes?.[j].status ?? 'refused');
      const keys = batch.flatMap(({ block }, j) => (statuses[j] === 'stored' ? [block] : []));
      const present = statuses.filter((status) => status === 'exists').length;
      counters.count('saved', groupId, keys.length);
      counters.count('present', groupId, present);
      inStore += keys.length + present;
      if (keys.length > 0) tell({ type: 'stored', groupId, keys });
    }
    return inStore;
  }

  #ended(id: number): void {
    const left = (this.#ofRequest.get(id) ?? 1) - 1;
    if (left > 0) this.#ofRequest.set(id, left);
    else this.#ofRequest.delete(id);
  }
}

function byGroup(pages: readonly PageOrder[]): PageOrder[][] {
  const groups = new Map<LayerGroupId, PageOrder[]>();
  for (const page of pages) {
    const ofGroup = groups.get(page.groupId);
    if (ofGroup === undefined) groups.set(page.groupId, [page]);
    else ofGroup.push(page);
  }
  return [...groups.values()];
}
