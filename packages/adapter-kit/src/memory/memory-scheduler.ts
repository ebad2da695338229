import type { BlockKey } from '@bufferwise/cache-manager';
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
import { blocksToLoad, blocksToSave, longestLoad, slotOfBlock } from '../connector/pages-to-move.ts';
import { AdapterError } from '../errors.ts';
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
    const { there, blocks, affinity, numTokens } = known;
    if (there === undefined) return { state: 'pending' };
    const prompt = { numTokens, computedTokens, tokensPerBlock: this.#tokensPerBlock };
    const found = longestLoad(this.#groups, prompt, ({ names }, ordinal) => there.has(names.name(blocks[ordinal], affinity).key));
    if (found === null) return { state: 'known', tokens: 0, async: false, groups: [] };
    known.offer = { state: 'known', tokens: found.end - computedTokens, async: this.#asyncLoad, groups: found.groups };
    return known.offer;
  }

  allocated(id: number, blocks: BlocksByGroup, computedTokens: number, externalTokens: number): void {
    const known = this.#known(id);
    if (externalTokens === 0) return;
    const end = computedTokens + externalTokens;
    // Exactly what was offered, whatever became of it since: the engine counts on it, and hears of each page that fails.
    const offered = this.#groups.filter(({ groupId }) => known.offer?.groups.includes(groupId) ?? true);
    known.loading = offered.flatMap((group) =>
      this.#ordersFor(known, group, blocks, blocksToLoad(group, computedTokens, end, this.#tokensPerBlock)),
    );
    known.saved = Math.max(known.saved, Math.floor(end / this.#tokensPerBlock));
    known.isLoading = this.#asyncLoad;
    this.#orders.loads.push({ id, async: this.#asyncLoad, pages: known.loading });
  }

  willWrite(id: number, blocks: BlocksByGroup, writtenTokens: number): void {
    const known = this.#known(id);
    const end = Math.min(known.blocks.length, Math.floor(writtenTokens / this.#tokensPerBlock));
    const pages = this.#groups.flatMap((group) =>
      this.#ordersFor(known, group, blocks, blocksToSave(group, known.saved, writtenTokens, this.#tokensPerBlock)),
    );
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
        `memory connector: request ${id} is not known, or has finished; tell of it with onNewRequest`,
      );
    return known;
  }
}
