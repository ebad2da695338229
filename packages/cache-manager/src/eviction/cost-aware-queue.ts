import { NONE } from '../columns.ts';
import { type PageId, type PageTable, rowOf } from '../page/page-table.ts';
import type { EvictionPolicy } from './eviction-policy.ts';
import type { EvictionView } from './eviction-view.ts';
import { GhostTable } from './ghost-table.ts';
import { MAX_PRIORITY } from './lru-queue.ts';
import { NUM_USES } from './page-use.ts';
import { ReuseOdds } from './reuse-odds.ts';

/** Base-2 logarithm of the odds of a page that was reused once, or more often, against one that never was. */
const REUSED_ODDS = [1, 1.5];
/** Kinds of pages: by use while never reused, then reused once, then more often. */
const NUM_KINDS = NUM_USES + REUSED_ODDS.length;
/** Classes of tokens saved, each of twice as many as the one before, from one block on. */
const NUM_COSTS = 16;
/** What a snapshot saves counts to this power: a long way without another one is also a way on which few requests stop. */
const SNAPSHOT_COST_WEIGHT = 2 / 3;
/** Fresh pages count as if they had lain for this part of a turnover: a use is not certain just because the page is new. */
const FRESH_AGE = 0.5;
/** Content hashes that are remembered, at most; sampled so that they reach back so many turnovers. */
const GHOSTS = 1 << 14;
const GHOST_TURNOVERS = 4;
/** Pages of the sample, let go or reused, between two looks at what they teach. */
const LESSON = 256;
/** Pages taken from one list before all are looked at again, where lists are many and pages small. */
const RUN = 16;

/**
 * The droppable pages of one pool group, ordered by priority, then by what they are likely to save: the page goes first that
 * promises the fewest tokens for the room it takes.
 *
 * That promise is (odds of reuse) × (tokens saved) / (age): what lay unused for long is likely to go on so, and odds or savings
 * twice as high make up for twice the age. Age counts the new pages since the page was last let go. The odds of a page that was
 * reused are higher than those of one that never was; of these they depend on the use (part of the request, length of the
 * answer), as far as pages of that use were asked for more or less often than others.
 *
 * How often a use is asked for again is learned from a sample of pages that is remembered by content hash beyond their eviction,
 * in a table of fixed size: what was evicted too early counts as much as what was kept.
 *
 * A page without which the blocks behind it would be lost waits until they are gone, however low its priority: losing it would
 * lose them as well.
 *
 * Pages of one priority, group, kind and cost are in one list, least recently used first, so only heads are compared. `push` and
 * `remove` are O(1); `first` looks at the heads of all lists, some dozens, once in a run of evictions. No garbage.
 */
export class CostAwareQueue implements EvictionPolicy {
  readonly #view: EvictionView;
  readonly #pages: PageTable;
  readonly #levels: (Level | null)[] = Array.from({ length: MAX_PRIORITY + 1 }, () => null);
  readonly #odds: readonly ReuseOdds[];
  readonly #ghosts: GhostTable;
  readonly #sampleMask: number;
  /** First list of each group, and whether its pages differ in what they save. */
  readonly #firstList: readonly number[];
  readonly #numCosts: readonly number[];
  readonly #numLists: number;
  /** What a new page adds to the claim of each list's head to be evicted: the inverse of odds times cost. */
  readonly #haste: Float64Array;
  #freshAge = 0;
  readonly #run: number;
  readonly #logOdds = new Float64Array(NUM_USES);
  #lowest = 0;
  #count = 0;
  /** New pages that were let go so far. */
  #clock = 1;
  #untaught = 0;

  constructor(view: EvictionView) {
    this.#view = view;
    this.#pages = view.table;
    this.#odds = Array.from({ length: view.numGroups }, () => new ReuseOdds());
    this.#ghosts = new GhostTable(Math.max(64, Math.min(GHOSTS, powerOfTwo(view.slots * GHOST_TURNOVERS))));
    this.#sampleMask = powerOfTwo((view.slots * GHOST_TURNOVERS) / GHOSTS) - 1;
    this.#numCosts = Array.from({ length: view.numGroups }, (_, group) => (view.isUniform(group) ? 1 : NUM_COSTS));
    let numLists = 0;
    this.#firstList = this.#numCosts.map((numCosts) => {
      const first = numLists;
      numLists += NUM_KINDS * numCosts;
      return first;
    });
    this.#numLists = numLists;
    this.#haste = new Float64Array(numLists);
    this.#run = view.slots > GHOSTS ? RUN : 1;
    this.#learn();
  }

  get count(): number {
    return this.#count;
  }

  push(page: PageId): void {
    const pages = this.#pages;
    const row = rowOf(page);
    if (pages.stamp[row] === 0) this.#clock++;
    pages.stamp[row] = this.#clock;
    const group = pages.lifecycle[page];
    const reuses = pages.reuses[page];
    const kind = reuses === 0 ? pages.use[page] : NUM_USES + Math.min(reuses, REUSED_ODDS.length) - 1;
    this.#remember(page, group, kind);
    const numCosts = this.#numCosts[group];
    const cost = numCosts === 1 ? 0 : costClass(this.#view.savedTokensOf(page));
    const list = this.#firstList[group] + kind * numCosts + cost;
    const level = this.#levelOf(page);
    pages.listInQueue[page] = list;
    const tail = level.tails[list];
    pages.previousInQueue[page] = tail;
    pages.nextInQueue[page] = NONE;
    level.tails[list] = page;
    if (tail === NONE) this.#setHead(level, list, page);
    else pages.nextInQueue[tail] = page;
    level.count++;
    this.#count++;
    if (pages.priority[page] < this.#lowest) this.#lowest = pages.priority[page];
  }

  remove(page: PageId): void {
    const level = this.#levelOf(page);
    this.#unlink(level, page);
    level.count--;
    this.#count--;
  }

  first(): PageId {
    if (this.#count === 0) return NONE;
    let waiting: PageId = NONE;
    for (let priority = this.#lowest; priority <= MAX_PRIORITY; priority++) {
      const level = this.#levels[priority];
      if (level === null || level.count === 0) {
        if (priority === this.#lowest) this.#lowest++;
        continue;
      }
      const page = this.#firstOf(level);
      if (page !== NONE) return page;
      if (waiting === NONE) waiting = level.heads[this.#numLists];
    }
    // All wait for blocks behind them, so those are held, and waiting does not help.
    return waiting;
  }

  reused(page: PageId): void {
    this.wanted(this.#pages.lifecycle[page], this.#view.contentHashOf(page));
  }

  wanted(group: number, contentHash: number): boolean {
    if ((contentHash & this.#sampleMask) !== 0) return false;
    const kind = this.#ghosts.take(contentHash);
    if (kind === NONE) return false;
    if (kind < NUM_USES) {
      this.#odds[group].sawReuse(kind);
      if (++this.#untaught === LESSON) this.#learn();
    }
    return true;
  }

  becameLeaf(page: PageId): void {
    const parked = this.#pages.listInQueue[page];
    if (parked < this.#numLists) return;
    const level = this.#levelOf(page);
    this.#unlink(level, page);
    // It waited because it was the first of its list.
    this.#putFirst(level, parked - this.#numLists, page);
  }

  /** The pages in the order in which they would be evicted if time stood still. For checks and tools, not for hot paths. */
  *[Symbol.iterator](): Generator<PageId> {
    const now = this.#clock + this.#freshAge;
    const { stamp, nextInQueue } = this.#pages;
    for (const level of this.#levels) {
      const pages: { page: PageId; claim: number }[] = [];
      level?.heads.forEach((head, list) => {
        for (let page = head; page !== NONE; page = nextInQueue[page]) {
          pages.push({ page, claim: list === this.#numLists ? 0 : (now - stamp[rowOf(page)]) * this.#haste[list] });
        }
      });
      pages.sort((a, b) => b.claim - a.claim);
      for (const { page } of pages) yield page;
    }
  }

  /** The first of the pages of one priority that do not wait for blocks behind them; NONE when all do. */
  #firstOf(level: Level): PageId {
    for (;;) {
      const list = this.#nextList(level);
      if (list === NONE) return NONE;
      const page = level.heads[list];
      if (!this.#view.isLeaf(page)) this.#park(level, page);
      else if (!this.#isWorthMore(level, list, page)) return page;
    }
  }

  /** The list whose head goes first; NONE when all lists are empty. */
  #nextList(level: Level): number {
    const { stamps } = level;
    if (level.left > 0 && level.heads[level.best] !== NONE) return level.best;
    const now = this.#clock + this.#freshAge;
    let best = NONE;
    let most = Number.NEGATIVE_INFINITY;
    for (let list = 0; list < this.#numLists; list++) {
      const claim = (now - stamps[list]) * this.#haste[list];
      if (claim <= most) continue;
      most = claim;
      best = list;
    }
    level.best = best;
    level.left = best === NONE ? 0 : this.#run;
    return best;
  }

  /**
   * Whether a page saves more than when it was put into its list, since what came before it on its path is gone. Then it is moved
   * to where it belongs.
   */
  #isWorthMore(level: Level, list: number, page: PageId): boolean {
    const group = this.#pages.lifecycle[page];
    const numCosts = this.#numCosts[group];
    if (numCosts === 1) return false;
    const cost = (list - this.#firstList[group]) % numCosts;
    const present = costClass(this.#view.savedTokensOf(page));
    if (present <= cost) return false;
    this.#unlink(level, page);
    this.#putFirst(level, list - cost + present, page);
    level.left = 0;
    return true;
  }

  /** Puts the head of its list aside until nothing hangs from its block. */
  #park(level: Level, page: PageId): void {
    this.#unlink(level, page);
    const parked = this.#pages.listInQueue[page] + this.#numLists;
    this.#putFirst(level, this.#numLists, page);
    this.#pages.listInQueue[page] = parked;
  }

  #putFirst(level: Level, list: number, page: PageId): void {
    const { nextInQueue, previousInQueue, listInQueue } = this.#pages;
    const head = level.heads[list];
    listInQueue[page] = list;
    previousInQueue[page] = NONE;
    nextInQueue[page] = head;
    if (head === NONE) level.tails[list] = page;
    else previousInQueue[head] = page;
    this.#setHead(level, list, page);
  }

  #unlink(level: Level, page: PageId): void {
    const { nextInQueue, previousInQueue, listInQueue } = this.#pages;
    const list = Math.min(listInQueue[page], this.#numLists);
    const next = nextInQueue[page];
    const previous = previousInQueue[page];
    if (next === NONE) level.tails[list] = previous;
    else previousInQueue[next] = previous;
    if (previous !== NONE) nextInQueue[previous] = next;
    else {
      if (list === level.best) level.left--;
      this.#setHead(level, list, next);
    }
  }

  #setHead(level: Level, list: number, page: PageId): void {
    level.heads[list] = page;
    level.stamps[list] = page === NONE ? Number.POSITIVE_INFINITY : this.#pages.stamp[rowOf(page)];
  }

  #levelOf(page: PageId): Level {
    const priority = this.#pages.priority[page];
    const known = this.#levels[priority];
    if (known !== null) return known;
    const level = new Level(this.#numLists);
    this.#levels[priority] = level;
    return level;
  }

  /** Counts a page of the sample that is let go, and remembers it beyond its eviction. */
  #remember(page: PageId, group: number, kind: number): void {
    const hash = this.#view.contentHashOf(page);
    if ((hash & this.#sampleMask) !== 0) return;
    if (!this.#ghosts.put(hash, kind) || kind >= NUM_USES) return;
    this.#odds[group].sawLetGo(kind);
    if (++this.#untaught === LESSON) this.#learn();
  }

  /** Weighs every list anew, from what was seen so far. */
  #learn(): void {
    this.#untaught = 0;
    this.#freshAge = this.#view.slots * FRESH_AGE;
    let seen = 10;
    let reused = 1;
    for (const odds of this.#odds) {
      seen += odds.seen;
      reused += odds.reused;
    }
    for (let group = 0; group < this.#odds.length; group++) {
      this.#odds[group].logOdds(reused / seen, this.#logOdds);
      const numCosts = this.#numCosts[group];
      const scale = Math.log2(this.#view.leastTokensOf(group));
      const weight = this.#view.isState(group) ? SNAPSHOT_COST_WEIGHT : 1;
      for (let kind = 0; kind < NUM_KINDS; kind++) {
        const odds = kind < NUM_USES ? this.#logOdds[kind] : REUSED_ODDS[kind - NUM_USES];
        for (let cost = 0; cost < numCosts; cost++) {
          this.#haste[this.#firstList[group] + kind * numCosts + cost] = 2 ** -(odds + (numCosts === 1 ? scale : cost * weight));
        }
      }
    }
    for (const level of this.#levels) if (level !== null) level.left = 0;
  }
}

/** The lists of one priority. */
class Level {
  /** The last list holds the pages that wait for blocks behind them. */
  readonly heads: Int32Array;
  readonly tails: Int32Array;
  /** When each head was let go; infinite for an empty list. */
  readonly stamps: Float64Array;
  count = 0;
  /** The list that was first when all were last looked at, and how many pages may be taken from it until they are again. */
  best = 0;
  left = 0;

  constructor(numLists: number) {
    this.heads = new Int32Array(numLists + 1).fill(NONE);
    this.tails = new Int32Array(numLists + 1).fill(NONE);
    this.stamps = new Float64Array(numLists + 1).fill(Number.POSITIVE_INFINITY);
  }
}

function costClass(savedTokens: number): number {
  return Math.max(0, Math.min(NUM_COSTS - 1, 31 - Math.clz32(savedTokens)));
}

/** The least power of two that is not below `value`. */
function powerOfTwo(value: number): number {
  let power = 1;
  while (power < value) power *= 2;
  return power;
}
