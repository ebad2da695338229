import { expect } from 'vitest';
import { NONE } from '../../src/columns.ts';
import { type KvCacheManager, type KvEvent, type KvEventSink, keyToHex } from '../../src/index.ts';
import { stateOf } from '../../src/testing/manager-registry.ts';
import { BlockKeyTable } from '../../src/tree/block-key-table.ts';
import type { BlockId } from '../../src/tree/block-table.ts';

/** Follows a manager by its events alone, as a router does, and notes whatever a router could not make sense of. */
export class EventMirror implements KvEventSink {
  readonly partialBlocks: boolean;
  readonly faults: string[] = [];
  /** What is known: group, tier and key. */
  readonly #known = new Set<string>();
  #keys: BlockKeyTable | undefined;
  #nextId = 0;

  constructor(partialBlocks = false) {
    this.partialBlocks = partialBlocks;
  }

  push(events: readonly KvEvent[]): void {
    if (events.length === 0) this.faults.push('an empty batch');
    for (const event of events) {
      if (event.id !== this.#nextId++) this.faults.push(`event ${event.id} where ${this.#nextId - 1} was due`);
      this.#apply(event);
    }
  }

  /** The events made sense, and what they told is what the tree has. */
  expectSame(manager: KvCacheManager): void {
    expect(this.faults).toEqual([]);
    const { tree } = stateOf(manager);
    this.#keys ??= new BlockKeyTable(tree.blocks, (root) => tree.scopeOf(root));
    expect([...this.#known].sort()).toEqual(wholePages(manager, this.#keys, this.partialBlocks).sort());
  }

  #apply(event: KvEvent): void {
    switch (event.type) {
      case 'stored':
        for (const { key } of event.blocks) this.#add(name(event.groupId, event.tier, key));
        return;
      case 'removed':
        for (const key of event.keys) this.#remove(name(event.groupId, event.tier, key));
        return;
      case 'updated':
        this.#remove(name(event.groupId, event.tier.from, event.block.key));
        this.#add(name(event.groupId, event.tier.to, event.block.key));
        return;
      case 'cleared':
        this.#known.clear();
    }
  }

  #add(page: string): void {
    if (this.#known.has(page)) this.faults.push(`${page} was stored twice`);
    this.#known.add(page);
  }

  #remove(page: string): void {
    if (!this.#known.delete(page)) this.faults.push(`${page} was removed and not known`);
  }
}

function name(group: number, tier: number, key: Uint8Array): string {
  return `group ${group} tier ${tier} ${keyToHex(key)}`;
}

/** The pages that a sink must know, straight from the tree. */
function wholePages(manager: KvCacheManager, keys: BlockKeyTable, partialBlocks: boolean): string[] {
  const { tree, storage, groups } = stateOf(manager);
  const { blocks } = tree;
  const found: string[] = [];
  // Not by recursion: a text may have tens of thousands of blocks.
  const waiting: BlockId[] = [...tree.roots.values()];
  for (let block = waiting.pop(); block !== undefined; block = waiting.pop()) {
    for (const { id } of groups) {
      for (let page = blocks.firstPage(block, id); page !== NONE; page = storage.pages.nextInBlock[page]) {
        const isWhole = storage.pages.coverage[page] === blocks.numTokens[block];
        if (isWhole && (partialBlocks || blocks.numTokens[block] === blocks.tokensPerBlock))
          found.push(name(id, storage.pages.tier[page], keys.keyOf(block)));
      }
    }
    for (let child = tree.order.first(block); child !== NONE; child = blocks.nextSibling[child]) waiting.push(child);
  }
  return found;
}
