import {
  AdapterError,
  affinityOf,
  type BlocksByGroup,
  blocksToLoad,
  blocksToSave,
  type ConnectorGroup,
  type ConnectorLayout,
  type ConnectorRequest,
  type ConnectorScheduler,
  type FinishAnswer,
  type Lookup,
  longestLoad,
  PageNames,
  type PageStore,
  type StepReport,
  slotOfBlock,
  wholeBlockKeys,
} from '@bufferwise/adapter-kit';
import { type BlockKey, keyToHex } from '@bufferwise/cache-manager/outside';
import type { LayerGroupId } from '@bufferwise/core-policy';
import { inTime } from '../clock.ts';
import { Admission } from './admission.ts';
import type { ConnectorSettings } from './connector-options.ts';
import type { ConnectorOrders, LoadOrder, PageOrder, RequestOrder } from './connector-orders.ts';
import type { GroupCounters } from './connector-statistics.ts';

/** What is known of a request. */
interface Known {
  blocks: readonly BlockKey[];
  affinity: string;
  numTokens: number;
  /** Names of pages in the store; undefined while nobody knows. */
  there: Set<string> | undefined;
  /** Groups of the last lookup that had something to load; undefined before it. */
  offered: readonly LayerGroupId[] | undefined;
  /** How many blocks, from the first on, are worth a write. */
  admitted: number;
  /** Blocks whose pages were ordered to be saved, or need not be. */
  saved: number;
  /** Pages that were ordered to be loaded and not reported as loaded. */
  loading: readonly PageOrder[];
  /** Some of it was ordered to be saved. */
  isSaving: boolean;
}

interface OfferedGroup extends ConnectorGroup {
  readonly names: PageNames;
}

export interface StoreSchedulerOptions {
  readonly store: PageStore;
  readonly layout: ConnectorLayout;
  readonly settings: ConnectorSettings;
  readonly counters: GroupCounters;
  /** Aborted when the connector closes. */
  readonly closing: AbortSignal;
}

/** The deciding side of `PageStoreConnector`: what can be loaded of a prompt, and what of it is worth keeping. */
export class StoreScheduler implements ConnectorScheduler {
  readonly #store: PageStore;
  readonly #settings: ConnectorSettings;
  readonly #counters: GroupCounters;
  readonly #closing: AbortSignal;
  readonly #tokensPerBlock: number;
  readonly #groups: readonly OfferedGroup[];
  readonly #admission: Admission;
  readonly #requests = new Map<number, Known>();
  #loads: LoadOrder[] = [];
  #saves: RequestOrder[] = [];
  #cancelled: number[] = [];
  /** Requests whose load was ordered inside of the step under way. */
  #loadingInStep: number[] = [];

  constructor({ store, layout, settings, counters, closing }: StoreSchedulerOptions) {
    this.#store = store;
    this.#settings = settings;
    this.#counters = counters;
    this.#closing = closing;
    this.#tokensPerBlock = layout.tokensPerBlock;
    this.#groups = layout.groups.map((group) => ({ ...group, names: new PageNames(layout, group) }));
    this.#admission = new Admission(settings.admission);
  }

  /** Beginnings of the names of all pages of the model. */
  get prefixes(): readonly string[] {
    return this.#groups.map(({ names }) => names.prefix);
  }

  /** Told again of the same request, with more tokens: what was computed since can be saved, too. */
  onNewRequest({ id, tokens, scope }: ConnectorRequest): void {
    const blocks = wholeBlockKeys(tokens, scope, this.#tokensPerBlock);
    const old = this.#requests.get(id);
    const common = old === undefined ? 0 : commonBlocks(old.blocks, blocks);
    const isWorth = this.#admission.isLongEnough(tokens.length);
    // Only blocks that are new to the request count as seen: it is no second user of its own.
    const isBegun = old !== undefined && old.admitted < common;
    const seen = this.#admission.admit(blocks.slice(common));
    const known: Known = {
      blocks,
      affinity: affinityOf(blocks),
      numTokens: tokens.length,
      there: isWorth ? undefined : new Set(),
      offered: undefined,
      admitted: !isWorth ? 0 : isBegun ? old.admitted : common + seen,
      saved: Math.min(old?.saved ?? 0, common),
      loading: old?.loading ?? [],
      isSaving: old?.isSaving ?? false,
    };
    this.#requests.set(id, known);
    if (isWorth) void this.#look(known);
  }

  lookup(id: number, computedTokens: number): Lookup {
    const known = this.#known(id);
    const { there, blocks, affinity, numTokens } = known;
    if (there === undefined) return { state: 'pending' };
    const prompt = { numTokens, computedTokens, tokensPerBlock: this.#tokensPerBlock };
    const found = longestLoad(this.#groups, prompt, ({ names }, ordinal) => there.has(names.name(blocks[ordinal], affinity).key));
    if (found === null) return { state: 'known', tokens: 0, async: false, groups: [] };
    known.offered = found.groups;
    return { state: 'known', tokens: found.end - computedTokens, async: this.#settings.asyncLoad, groups: found.groups };
  }

  allocated(id: number, blocks: BlocksByGroup, computedTokens: number, externalTokens: number): void {
    const known = this.#known(id);
    if (externalTokens === 0) return;
    const end = computedTokens + externalTokens;
    // Exactly what was offered, whatever became of it since: the engine counts on it, and hears of each page that fails.
    const offered = this.#groups.filter(({ groupId }) => known.offered?.includes(groupId) ?? true);
    const pages = offered.flatMap((group) =>
      this.#ordersFor(known, group, blocks, blocksToLoad(group, computedTokens, end, this.#tokensPerBlock)),
    );
    known.loading = pages;
    known.saved = Math.max(known.saved, Math.floor(end / this.#tokensPerBlock));
    this.#loads.push({ id, async: this.#settings.asyncLoad, pages });
    if (!this.#settings.asyncLoad) this.#loadingInStep.push(id);
  }

  willWrite(id: number, blocks: BlocksByGroup, writtenTokens: number): void {
    const known = this.#known(id);
    const pages = this.#groups.flatMap((group) => {
      const ordinals = blocksToSave(group, known.saved, writtenTokens, this.#tokensPerBlock);
      const worth = ordinals.filter((ordinal) => ordinal < known.admitted);
      this.#counters.count('notAdmitted', group.groupId, ordinals.length - worth.length);
      const orders = this.#ordersFor(known, group, blocks, worth);
      const missing = orders.filter(({ name }) => !known.there?.has(name.key));
      this.#counters.count('present', group.groupId, orders.length - missing.length);
      return missing;
    });
    known.saved = Math.max(known.saved, Math.min(known.blocks.length, Math.floor(writtenTokens / this.#tokensPerBlock)));
    if (pages.length === 0) return;
    known.isSaving = true;
    this.#saves.push({ id, pages });
  }

  buildStep(): ConnectorOrders {
    const orders = { loads: this.#loads, saves: this.#saves, cancelled: this.#cancelled };
    this.#loads = [];
    this.#saves = [];
    this.#cancelled = [];
    return orders;
  }

  update({ failedPages, finished }: StepReport): void {
    const failed = new Set(failedPages.map(({ groupId, slot }) => `${groupId} ${slot}`));
    const bad = new Set<string>();
    for (const known of this.#requests.values()) {
      for (const { groupId, slot, name, block } of known.loading) {
        if (!failed.has(`${groupId} ${slot}`)) continue;
        bad.add(name.key);
        // What is computed instead is worth saving: the store has lost it.
        known.saved = Math.min(known.saved, known.blocks.indexOf(block));
      }
    }
    for (const { there } of this.#requests.values()) for (const name of bad) there?.delete(name);
    for (const id of [...finished.loaded, ...this.#loadingInStep]) {
      const known = this.#requests.get(id);
      if (known !== undefined) known.loading = [];
    }
    this.#loadingInStep = [];
  }

  requestFinished(id: number): FinishAnswer {
    const { isSaving, loading } = this.#known(id);
    const isLoading = loading.length > 0;
    if (isLoading) {
      this.#loads = this.#loads.filter((order) => order.id !== id);
      this.#cancelled.push(id);
    }
    this.#requests.delete(id);
    return { delayFree: isSaving || isLoading };
  }

  /** Nothing is there any more. */
  forget(): void {
    for (const { there } of this.#requests.values()) there?.clear();
  }

  /** Asks the store for all pages that the request might load. A store that cannot be asked in time has none. */
  async #look(known: Known): Promise<void> {
    const names = this.#groups.flatMap((group) => known.blocks.map((block) => group.names.name(block, known.affinity)));
    const { maxBatch } = this.#store.limits;
    const batches = Array.from({ length: Math.ceil(names.length / maxBatch) }, (_, i) =>
      names.slice(i * maxBatch, (i + 1) * maxBatch),
    );
    const answers = await inTime(this.#settings.clock, this.#settings.timeouts.lookupMs, this.#closing, (signal) =>
      Promise.all(batches.map((batch) => this.#store.has(batch, { signal }))),
    );
    const found = answers?.flat() ?? [];
    known.there = new Set(names.flatMap(({ key }, i) => (found[i] ? [key] : [])));
  }

  /** Orders for pages of blocks, as far as the request holds them and its text is known. */
  #ordersFor(known: Known, group: OfferedGroup, blocks: BlocksByGroup, ordinals: readonly number[]): PageOrder[] {
    const { groupId } = group;
    return ordinals.flatMap((ordinal) => {
      const slot = slotOfBlock(group, blocks, ordinal);
      const block = known.blocks[ordinal];
      if (slot < 0 || block === undefined) return [];
      return [{ groupId, slot, block, name: group.names.name(block, known.affinity) }];
    });
  }

  #known(id: number): Known {
    const known = this.#requests.get(id);
    if (known === undefined)
      throw new AdapterError(
        'unknown-request',
        `page store connector: request ${id} is not known, or has finished; tell of it with onNewRequest`,
      );
    return known;
  }
}

function commonBlocks(a: readonly BlockKey[], b: readonly BlockKey[]): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) if (keyToHex(a[i]) !== keyToHex(b[i])) return i;
  return length;
}
