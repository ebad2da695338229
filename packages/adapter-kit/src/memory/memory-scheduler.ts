import type { BlockKey } from '@bufferwise/cache-manager';
import { type LayerGroupId, matchNeeds } from '@bufferwise/core-policy';
import type {
  BlocksByGroup,
  ConnectorGroup,
  ConnectorLayout,
  ConnectorRequest,
  ConnectorScheduler,
  FinishAnswer,
  Lookup,
  StepReport,
} from '../connector/kv-connector.ts';
import { affinityOf, PageNames, wholeBlockKeys } from '../connector/page-names.ts';
import { AdapterError } from '../errors.ts';
import type { PageKey } from '../page-store/page-key.ts';
import type { PageStore } from '../page-store/page-store.ts';
import type { MemoryOrders, PageOrder } from './connector-orders.ts';

/** What is known of a request. */
interface Known {
  readonly blocks: readonly BlockKey[];
  readonly affinity: string;
  readonly numTokens: number;
  /** Names of pages in the store; undefined while nobody knows. */
  there: Set<string> | undefined;
  /** The last answer to a lookup that had something to load. */
  offer: Extract<Lookup, { state: 'known' }> | undefined;
  /** Blocks whose pages were ordered to be saved. */
  saved: number;
  /** Pages that were ordered to be loaded. */
  loading: readonly PageOrder[];
  /** Saves of it that no worker has reported as done. */
  isSaving: boolean;
  /** An asynchronous load of it is under way, as far as workers have reported. */
  isLoading: boolean;
}

interface OfferedGroup extends ConnectorGroup {
  readonly names: PageNames;
}

/** The deciding side of `MemoryConnector`: offers the longest prefix whose pages all required groups have. */
export class MemoryScheduler implements ConnectorScheduler {
  readonly #store: PageStore;
  readonly #asyncLoad: boolean;
  readonly #tokensPerBlock: number;
  readonly #groups: readonly OfferedGroup[];
  readonly #requests = new Map<number, Known>();
  #orders: { loads: MemoryOrders['loads'][number][]; saves: MemoryOrders['saves'][number][] } = { loads: [], saves: [] };

  constructor(store: PageStore, layout: ConnectorLayout, { asyncLoad }: { asyncLoad: boolean }) {
    this.#store = store;
    this.#asyncLoad = asyncLoad;
    this.#tokensPerBlock = layout.tokensPerBlock;
    this.#groups = layout.groups.map((group) => ({ ...group, names: new PageNames(layout, group) }));
  }

  /** Beginnings of the names of all pages of the model. */
  get prefixes(): readonly string[] {
    return this.#groups.map(({ names }) => names.prefix);
  }

  onNewRequest({ id, tokens, scope }: ConnectorRequest): void {
    const blocks = wholeBlockKeys(tokens, scope, this.#tokensPerBlock);
    const known: Known = {
      blocks,
      affinity: affinityOf(blocks),
      numTokens: tokens.length,
      there: undefined,
      offer: undefined,
      saved: 0,
      loading: [],
      isSaving: false,
      isLoading: false,
    };
    this.#requests.set(id, known);
    void this.#look(known);
  }

  lookup(id: number, computedTokens: number): Lookup {
    const known = this.#known(id);
    const { there } = known;
    if (there === undefined) return { state: 'pending' };
    // The last token is always computed: something has to come out.
    for (
      let block = Math.floor((known.numTokens - 1) / this.#tokensPerBlock);
      block * this.#tokensPerBlock > computedTokens;
      block--
    ) {
      const end = block * this.#tokensPerBlock;
      const complete = this.#groups.filter((group) =>
        this.#needed(known, group, computedTokens, end).every(({ name }) => there.has(name.key)),
      );
      if (this.#groups.some((group) => group.lifecycle.policy === 'required' && !complete.includes(group))) continue;
      const groups = complete.map(({ groupId }) => groupId);
      known.offer = { state: 'known', tokens: end - computedTokens, async: this.#asyncLoad, groups };
      return known.offer;
    }
    return { state: 'known', tokens: 0, async: false, groups: [] };
  }

  allocated(id: number, blocks: BlocksByGroup, computedTokens: number, externalTokens: number): void {
    const known = this.#known(id);
    if (externalTokens === 0) return;
    const end = computedTokens + externalTokens;
    // Exactly what was offered, whatever became of it since: the engine counts on it, and hears of each page that fails.
    const offered = this.#groups.filter(({ groupId }) => known.offer?.groups.includes(groupId) ?? true);
    known.loading = offered.flatMap((group) =>
      this.#needed(known, group, computedTokens, end).flatMap(({ ordinal, name }) =>
        this.#order(known, group, blocks[group.groupId], ordinal, name),
      ),
    );
    known.saved = Math.max(known.saved, Math.floor(end / this.#tokensPerBlock));
    known.isLoading = this.#asyncLoad;
    this.#orders.loads.push({ id, async: this.#asyncLoad, pages: known.loading });
  }

  willWrite(id: number, blocks: BlocksByGroup, writtenTokens: number): void {
    const known = this.#known(id);
    const end = Math.min(known.blocks.length, Math.floor(writtenTokens / this.#tokensPerBlock));
    const isBorder = writtenTokens % this.#tokensPerBlock === 0;
    const pages = this.#groups.flatMap((group) => {
      const ordinals = group.lifecycle.kind === 'attention' ? range(known.saved, end) : isBorder && end > 0 ? [end - 1] : [];
      return ordinals.flatMap((ordinal) =>
        this.#order(known, group, blocks[group.groupId], ordinal, group.names.name(known.blocks[ordinal], known.affinity)),
      );
    });
    known.saved = Math.max(known.saved, end);
    if (pages.length === 0) return;
    known.isSaving = true;
    this.#orders.saves.push({ id, pages });
  }

  buildStep(): MemoryOrders {
    const orders = this.#orders;
    this.#orders = { loads: [], saves: [] };
    return orders;
  }

  update({ failedPages, finished }: StepReport): void {
    for (const id of finished.loaded) {
      const known = this.#requests.get(id);
      if (known !== undefined) known.isLoading = false;
    }
    for (const known of this.#requests.values()) {
      for (const { groupId, slot, name, block } of known.loading) {
        if (!failedPages.some((page) => page.groupId === groupId && page.slot === slot)) continue;
        known.there?.delete(name.key);
        // What is computed instead is worth saving: the store has lost it.
        known.saved = Math.min(known.saved, known.blocks.indexOf(block));
      }
    }
  }

  requestFinished(id: number): FinishAnswer {
    const { isSaving, isLoading } = this.#known(id);
    this.#requests.delete(id);
    // A load that is late must not write into the pages of whoever has them next.
    return { delayFree: isSaving || isLoading };
  }

  /** Nothing is there any more. */
  forget(): void {
    for (const { there } of this.#requests.values()) there?.clear();
  }

  /** Asks the store for all pages that the request might load. A store that cannot be asked has none. */
  async #look(known: Known): Promise<void> {
    const names = this.#groups.flatMap(({ names }) => known.blocks.map((block) => names.name(block, known.affinity)));
    const there = new Set<string>();
    try {
      for (let i = 0; i < names.length; i += this.#store.limits.maxBatch) {
        const batch = names.slice(i, i + this.#store.limits.maxBatch);
        const answers = await this.#store.has(batch);
        batch.forEach(({ key }, j) => {
          if (answers[j]) there.add(key);
        });
      }
    } catch {
      there.clear();
    }
    known.there = there;
  }

  /** Pages that a request with `computedTokens` needs of the store to continue at `end`. */
  #needed(known: Known, group: OfferedGroup, computedTokens: number, end: number): { ordinal: number; name: PageKey }[] {
    const needs = matchNeeds(group.lifecycle, end, this.#tokensPerBlock);
    const firstMissing = Math.floor(computedTokens / this.#tokensPerBlock);
    const ordinals =
      needs.kind === 'snapshot'
        ? [needs.blockOrdinal]
        : [...range(needs.sinks.begin, needs.sinks.end), ...range(needs.window.begin, needs.window.end)].filter(
            (block) => block >= firstMissing,
          );
    return ordinals.map((ordinal) => ({ ordinal, name: group.names.name(known.blocks[ordinal], known.affinity) }));
  }

  /** The order for one page, unless the request holds none there. */
  #order(known: Known, group: OfferedGroup, slots: readonly number[] | undefined, ordinal: number, name: PageKey): PageOrder[] {
    const slot = slots?.[group.lifecycle.kind === 'attention' ? ordinal : 0] ?? -1;
    return slot < 0 ? [] : [{ groupId: group.groupId as LayerGroupId, slot, name, block: known.blocks[ordinal] }];
  }

  #known(id: number): Known {
    const known = this.#requests.get(id);
    if (known === undefined)
      throw new AdapterError(
        'unknown-request',
        `memory connector: request ${id} is not known, or has finished; tell of it with onNewRequest`,
      );
    return known;
  }
}

const range = (begin: number, end: number) => Array.from({ length: Math.max(0, end - begin) }, (_, i) => begin + i);
