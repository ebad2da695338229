import { grownColumn } from '../columns.ts';
import type { PageId, PageTable } from '../page/page-table.ts';
import type {
  KvEvent,
  KvEventSink,
  Medium,
  RemovedEvent,
  StoredBlock,
  StoredEvent,
  UpdatedEvent,
} from '../ports/kv-event-sink.ts';
import type { GroupRules } from '../request/group-rules.ts';
import { type BlockKey, sameKey } from '../tree/block-key.ts';
import type { BlockKeyTable } from '../tree/block-key-table.ts';
import type { BlockId } from '../tree/block-table.ts';
import type { PageListener } from '../tree/page-listener.ts';
import type { RadixTree } from '../tree/radix-tree.ts';
import { scopeIds } from '../tree/reuse-scope.ts';
import type { TokenSeq } from '../tree/token-seq.ts';

type WithoutId<E> = E extends KvEvent ? Omit<E, 'id'> : never;
/** An event that has not been pushed yet. */
type Draft = WithoutId<KvEvent>;

/** A stored event that the next child of its last block may still join. */
interface OpenRun {
  readonly blocks: StoredBlock[];
  readonly tier: number;
}

/**
 * Turns what the tree lists into events, collects them during a call, and pushes them as one batch when it ends.
 *
 * A stored block joins the latest stored event of its group when it is the child of that event's last block and no removal
 * waits. Removals of a group wait, so that they become one event; they go out before anything else is stored in that
 * group, and all of them before any other event. So nothing is ever stored before its own earlier removal.
 *
 * Keys are computed when a block is first announced and remembered, so that a removal needs no tokens.
 */
export class EventRecorder implements PageListener {
  /** Batches that the sink failed to take. */
  failedPushes = 0;
  readonly #sink: KvEventSink;
  readonly #partialBlocks: boolean;
  readonly #tree: RadixTree;
  readonly #pages: PageTable;
  readonly #groups: readonly GroupRules[];
  readonly #keys: BlockKeyTable;
  readonly #media: readonly Medium[];
  /** By tier: bits of all tiers of its medium. */
  readonly #mediumBits: readonly number[];
  /** Tiers in which a block is announced, as bits: entry `block * groups + group`. */
  #announced = new Uint32Array(0);
  #drafts: Draft[] = [];
  /** By group. */
  readonly #openRuns: (OpenRun | null)[];
  /** Keys that wait to be told as removed: entry `group * tiers + tier`. */
  readonly #removals: BlockKey[][];
  #numRemovals = 0;
  #nextId = 0;

  constructor(options: {
    sink: KvEventSink;
    tree: RadixTree;
    pages: PageTable;
    groups: readonly GroupRules[];
    keys: BlockKeyTable;
    /** The medium of each tier, warm to cold. */
    media: readonly Medium[];
  }) {
    const { sink, tree, pages, groups, keys, media } = options;
    this.#sink = sink;
    this.#partialBlocks = sink.partialBlocks ?? false;
    this.#tree = tree;
    this.#pages = pages;
    this.#groups = groups;
    this.#keys = keys;
    this.#media = media;
    this.#mediumBits = media.map((medium) =>
      media.reduce((bits, other, tier) => (other === medium ? bits | (1 << tier) : bits), 0),
    );
    this.#openRuns = groups.map(() => null);
    this.#removals = Array.from({ length: groups.length * media.length }, () => []);
  }

  /** Tells that the manager is there. `slotsPerTier` by group. */
  created(slotsPerTier: readonly (readonly number[])[]): void {
    for (const { id, policy, lifecycle } of this.#groups) {
      if (policy !== 'private') this.#add({ type: 'created', groupId: id, lifecycle, slotsPerTier: slotsPerTier[id] });
    }
  }

  listed(page: PageId): void {
    if (this.#isWhole(page)) this.stored(page, this.#pages.tier[page]);
  }

  unlisted(page: PageId): void {
    if (!this.#isWhole(page)) return;
    for (let tier = 0; tier < this.#media.length; tier++) this.removed(page, tier);
  }

  /** A copy of a listed page is in a tier. */
  stored(page: PageId, tier: number): void {
    if (!this.#isWhole(page)) return;
    const at = this.#announcement(page);
    const known = this.#announced[at];
    this.#announced[at] = known | (1 << tier);
    if ((known & this.#mediumBits[tier]) === 0) this.#addStored(page, tier);
  }

  /** The copy of a listed page in a tier is gone. */
  removed(page: PageId, tier: number): void {
    if (!this.#isWhole(page)) return;
    const at = this.#announcement(page);
    const known = this.#announced[at];
    const left = known & ~(1 << tier);
    this.#announced[at] = left;
    if (known === left || (left & this.#mediumBits[tier]) !== 0) return;
    this.#removals[this.#pages.lifecycle[page] * this.#media.length + tier].push(this.#keys.keyOf(this.#pages.block[page]));
    this.#numRemovals++;
  }

  /** A listed page went from one tier to another. */
  moved(page: PageId, from: number, to: number): void {
    if (!this.#isWhole(page)) return;
    const at = this.#announcement(page);
    const known = this.#announced[at];
    if ((known & (1 << from)) === 0) return;
    if (known !== 1 << from) {
      this.stored(page, to);
      this.removed(page, from);
      return;
    }
    this.#announced[at] = 1 << to;
    const block = this.#pages.block[page];
    const { id, lifecycle } = this.#groups[this.#pages.lifecycle[page]];
    const update: Omit<UpdatedEvent, 'id'> = {
      type: 'updated',
      groupId: id,
      lifecycle,
      tier: { from, to },
      medium: { from: this.#media[from], to: this.#media[to] },
      scope: this.#scopeOf(block),
      parentKey: this.#parentKey(block),
      block: this.#storedBlock(page),
    };
    this.#add(update);
  }

  /** Everything that was announced is gone. */
  cleared(): void {
    this.#add({ type: 'cleared' });
  }

  /** Pushes what has come together since the last time. Never throws. */
  flush(): void {
    if (this.#numRemovals > 0) this.#addAllRemovals();
    if (this.#drafts.length === 0) return;
    const events = this.#drafts.map((draft) => ({ id: this.#nextId++, ...draft }) as KvEvent);
    this.#drafts = [];
    this.#openRuns.fill(null);
    try {
      // A sink may be asynchronous against its type; a promise that fails must not become an unhandled rejection.
      const taken = this.#sink.push(events) as unknown;
      if (taken instanceof Promise) taken.catch(() => this.failedPushes++);
    } catch {
      this.failedPushes++;
    }
  }

  /** Whether a page covers all of its block, and the sink is told of such blocks. */
  #isWhole(page: PageId): boolean {
    const block = this.#pages.block[page];
    const { numTokens, tokensPerBlock } = this.#tree.blocks;
    return this.#pages.coverage[page] === numTokens[block] && (this.#partialBlocks || numTokens[block] === tokensPerBlock);
  }

  #announcement(page: PageId): number {
    const numGroups = this.#groups.length;
    const { blocks } = this.#tree;
    const length = blocks.numRows * numGroups;
    if (this.#announced.length < length) this.#announced = grownColumn(this.#announced, length);
    return blocks.rowOf(this.#pages.block[page]) * numGroups + this.#pages.lifecycle[page];
  }

  #addStored(page: PageId, tier: number): void {
    const group = this.#pages.lifecycle[page];
    const block = this.#pages.block[page];
    const parentKey = this.#parentKey(block);
    const stored = this.#storedBlock(page);
    const run = this.#openRuns[group];
    if (
      run !== null &&
      run.tier === tier &&
      this.#numRemovals === 0 &&
      sameKey(run.blocks[run.blocks.length - 1].key, parentKey)
    ) {
      run.blocks.push(stored);
      return;
    }
    this.#addRemovals(group);
    const { id, lifecycle } = this.#groups[group];
    const blocks = [stored];
    const event: Omit<StoredEvent, 'id'> = {
      type: 'stored',
      groupId: id,
      lifecycle,
      tier,
      medium: this.#media[tier],
      scope: this.#scopeOf(block),
      parentKey,
      blocks,
    };
    this.#drafts.push(event);
    this.#openRuns[group] = { blocks, tier };
  }

  /** Any event but a stored or a removed one: whatever waits goes out before it. */
  #add(draft: Draft): void {
    this.#addAllRemovals();
    this.#drafts.push(draft);
  }

  #addAllRemovals(): void {
    for (let group = 0; group < this.#groups.length; group++) this.#addRemovals(group);
  }

  #addRemovals(group: number): void {
    for (let tier = 0; tier < this.#media.length; tier++) {
      const at = group * this.#media.length + tier;
      const keys = this.#removals[at];
      if (keys.length === 0) continue;
      this.#removals[at] = [];
      this.#numRemovals -= keys.length;
      const event: Omit<RemovedEvent, 'id'> = {
        type: 'removed',
        groupId: this.#groups[group].id,
        tier,
        medium: this.#media[tier],
        keys,
      };
      this.#drafts.push(event);
      // What is stored from now on must not join an event from before this one.
      this.#openRuns[group] = null;
    }
  }

  #storedBlock(page: PageId): StoredBlock {
    const block = this.#pages.block[page];
    return { key: this.#keys.keyOf(block), tokens: this.#tokensOf(block), priority: this.#pages.priority[page] };
  }

  #tokensOf(block: BlockId): TokenSeq {
    const { blocks } = this.#tree;
    const digests = blocks.digests(block);
    const ids = blocks.tokens(block);
    return digests === undefined ? ids.slice() : Array.from(ids, (id, i) => digests.get(i)?.slice() ?? id);
  }

  #parentKey(block: BlockId): BlockKey | null {
    const { ordinal, parent } = this.#tree.blocks;
    return ordinal[block] === 0 ? null : this.#keys.keyOf(parent[block]);
  }

  #scopeOf(block: BlockId) {
    const { ordinal, parent } = this.#tree.blocks;
    let root = block;
    while (ordinal[root] >= 0) root = parent[root];
    return scopeIds(this.#tree.scopeOf(root));
  }
}
