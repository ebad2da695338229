import type { KvCache } from '@bufferwise/cache-manager';
import type { LayerGroupId } from '@bufferwise/core-policy';
import type { PageSource } from '@bufferwise/scratch-allocator';
import type { SequenceChunk } from '../engine/gpu-model.ts';
import type { TokenList } from '../scheduler/token-list.ts';
import type { CopyPages, OpenedReuse } from './open-reuse.ts';

/** What a second run is made of. */
export interface CatchUpParts {
  /** Of the run: opened where it begins. */
  readonly cache: KvCache;
  readonly target: OpenedReuse;
  /** Optional groups that the run begins with. */
  readonly optionalReuseGroups: readonly LayerGroupId[];
  /** Groups of full attention that `target` reused. */
  readonly whole: ReadonlySet<LayerGroupId>;
  readonly copyPages: CopyPages;
}

/**
 * A second run over the last part of a matched prefix, for groups whose past was neither reused nor kept: optional ones that are
 * incomplete, and private ones. It has pages of its own, as it begins where windows and state of the match are not live any more: of these it
 * goes on from what others keep for its beginning. Of full attention it reads the pages of the match and writes none. What it fills is
 * copied to the request, and the rest forgotten.
 */
export class CatchUp {
  /** The token it began with. */
  readonly from: number;
  readonly #cache: KvCache;
  readonly #target: OpenedReuse;
  readonly #optionalReuseGroups: readonly LayerGroupId[];
  /** Groups of full attention that the request reused: their pages are those of the whole prefix. */
  readonly #whole: ReadonlySet<LayerGroupId>;
  readonly #copyPages: CopyPages;
  #resumedBefore = false;
  #end = 0;

  constructor({ cache, target, optionalReuseGroups, whole, copyPages }: CatchUpParts) {
    this.from = cache.numCommittedTokens;
    this.#cache = cache;
    this.#target = target;
    this.#optionalReuseGroups = optionalReuseGroups;
    this.#whole = whole;
    this.#copyPages = copyPages;
  }

  /** Tokens that are still to be run. */
  get remaining(): number {
    return this.#target.matched - this.#cache.historyLength;
  }

  async resume(): Promise<boolean> {
    const selection = this.#resumedBefore ? {} : { optionalReuseGroups: this.#optionalReuseGroups };
    if (!(await this.#cache.resume(selection))) return false;
    this.#resumedBefore = true;
    this.#cache.stopCommitting();
    return true;
  }

  prepare(numTokens: number): boolean {
    const start = this.#cache.historyLength;
    if (!this.#cache.resize(start + numTokens, start)) return false;
    this.#end = start + numTokens;
    return true;
  }

  chunks(known: TokenList): readonly SequenceChunk[] {
    const cache = this.#cache;
    const start = cache.historyLength;
    const { matched } = this.#target;
    const pages = pagesOfBoth(this.#target.cache, cache, this.#whole);
    return [
      {
        cache,
        pages,
        tokens: known.slice(start, this.#end),
        start,
        matched,
        reusedGroups: this.#whole,
        logits: 'none',
      },
    ];
  }

  /** @returns tokens that were run */
  submitted(): number {
    const numTokens = this.#end - this.#cache.historyLength;
    this.#cache.resize(null, this.#end);
    if (this.remaining > 0) return numTokens;
    const { cache, missing } = this.#target;
    this.#copyPages(this.#cache, cache, missing);
    this.#target.catchUp = null;
    this.close();
    return numTokens;
  }

  suspend(): void {
    if (this.#cache.status === 'active') this.#cache.suspend();
  }

  close(): void {
    this.#cache.close();
  }
}

/** Pages of the match where it holds all of the prefix, as far as the second run has come; else those of the run. */
function pagesOfBoth(match: KvCache, run: KvCache, whole: ReadonlySet<LayerGroupId>): PageSource {
  return {
    basePageIndices: (groupId) => {
      const own = run.basePageIndices(groupId);
      return whole.has(groupId) ? match.basePageIndices(groupId).subarray(0, own.length) : own;
    },
    ssmBlockBaseIndex: (groupId) => run.ssmBlockBaseIndex(groupId),
    scratch: (groupId) => run.scratch(groupId),
  };
}
