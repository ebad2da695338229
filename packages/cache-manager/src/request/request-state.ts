import { divUp } from '@bufferwise/core-policy';
import { grownColumn, grownRequestLength, NONE } from '../columns.ts';
import { DEFAULT_PRIORITY } from '../eviction/lru-queue.ts';
import type { ManagerState } from '../manager-state.ts';
import { RequestGrowth } from '../statistics/request-growth.ts';
import type { BlockId } from '../tree/block-table.ts';
import type { TokenBuffer } from '../tree/token-seq.ts';
import { GroupState } from './group-state.ts';
import type { MatchDepths } from './match.ts';
import type { MatchLimit } from './match-limits.ts';
import type { PriorityFn } from './priority.ts';
import { QuietReach } from './quiet-step.ts';
import type { Retention } from './retention.ts';

/** Tokens of an answer that there is room for beforehand. */
export const ANSWER_TOKENS = 1024;

/**
 * One request between creation and close: suspended -> active <-> suspended -> closed.
 *
 * Lengths in tokens, always `committed <= history <= capacity`. The rules that change a state stand in `resume.ts`,
 * `resize.ts` and `commit.ts`; this file only says what there is.
 */
export class RequestState {
  readonly manager: ManagerState;
  /** The manager's number of the request, never used again. */
  readonly key: number;
  readonly id: number | undefined;
  readonly scope: string;
  groups: readonly GroupState[];
  depths: Readonly<MatchDepths>;
  /** What shortened the match, when it was claimed. */
  limits: readonly MatchLimit[] = [];
  /** Tokens of the match. */
  matched: number;
  /** Tokens of the prompt that was looked up; null when none was. */
  lookedUp: number | null;
  /** Whether its matches end where optional groups are complete as well. */
  readonly requireOptional: boolean;
  /** History from which on new blocks are for generated tokens; infinite when nobody knows. */
  readonly expectedPromptLength: number;
  /** Blocks that there are likely to be in the end, as far as the prompt tells. */
  readonly expectedBlocks: number;
  growth = new RequestGrowth();
  quiet = new QuietReach();
  /** Whether the tree goes on behind the match: a second path parts from the first there. */
  isFork = false;
  /** Exactly the committed tokens. */
  tokens: TokenBuffer;
  status: 'suspended' | 'active' | 'closed' = 'suspended';
  committed: number;
  history: number;
  capacity: number;
  /** Sequences that continue from one history: 1 unless it was forked into beams. */
  beamWidth = 1;
  resumedBefore = false;
  /** Whether anything was committed after the match. */
  hasCommitted = false;
  /** False after `stopCommitting`. */
  mayCommit = true;
  /** True once a commit with `end` moved the request's own pages into the tree. */
  ended = false;
  /** The tree's `heldLosses` when this request last made its path whole. */
  seenLosses: number;
  /** Whether a block of the request's path came back that was evicted not long ago, and its ordinal. */
  returnedEnd = 0;
  /** Full blocks, from the first on, that were in the tree when last looked for. */
  attachedEnd = 0;
  /** Null when nothing is to be kept longer than usual, or less long. */
  readonly retention: Retention | null;
  /** Tokens that were written before pages were last lost; 0 when none ever were. */
  reached = 0;
  /** How often it began again. Whoever waited for something looks whether it still has the same request before it. */
  beginnings = 0;
  /** Whether it lost pages and the caller was not told yet. */
  lossUntold = false;
  readonly #priority: PriorityFn | undefined;
  #blocks = new Int32Array(16).fill(NONE);
  #generations = new Uint32Array(16);

  constructor(options: {
    manager: ManagerState;
    id: number | undefined;
    scope: string;
    tokens: TokenBuffer;
    depths: MatchDepths;
    lookedUp: number | null;
    requireOptional: boolean;
    expectedPromptLength: number;
    priority: PriorityFn | undefined;
    retention: Retention | null;
  }) {
    this.manager = options.manager;
    this.key = options.manager.takeRequestKey();
    this.id = options.id;
    this.scope = options.scope;
    this.tokens = options.tokens;
    this.expectedBlocks = divUp(options.tokens.expectedLength, options.manager.config.tokensPerBlock);
    this.depths = Object.freeze({ ...options.depths });
    this.matched = options.depths.usable;
    this.lookedUp = options.lookedUp;
    this.requireOptional = options.requireOptional;
    this.expectedPromptLength = options.expectedPromptLength;
    this.committed = this.history = this.capacity = this.matched;
    this.groups = options.manager.groups.map((rules) => new GroupState(rules));
    this.seenLosses = options.manager.tree.heldLosses;
    this.#priority = options.priority;
    this.retention = options.retention;
  }

  /** An active request that is where another one is, as yet without pages and unknown to the manager. */
  static continuing(source: RequestState, id: number | undefined): RequestState {
    const request = new RequestState({
      manager: source.manager,
      id,
      scope: source.scope,
      tokens: source.tokens.prefix(source.tokens.length),
      depths: source.depths,
      lookedUp: null,
      requireOptional: source.requireOptional,
      expectedPromptLength: source.expectedPromptLength,
      priority: source.#priority,
      retention: source.retention,
    });
    request.status = 'active';
    request.resumedBefore = true;
    request.committed = source.committed;
    request.history = source.history;
    request.capacity = source.capacity;
    request.hasCommitted = source.hasCommitted;
    request.mayCommit = source.mayCommit;
    request.seenLosses = source.seenLosses;
    for (let ordinal = 0; ordinal < source.attachedEnd && source.block(ordinal) !== NONE; ordinal++) {
      request.setBlock(ordinal, source.block(ordinal));
      request.attachedEnd = ordinal + 1;
    }
    for (const [index, group] of request.groups.entries()) group.adoptChoices(source.groups[index]);
    return request;
  }

  /**
   * Takes everything back to a match of its committed tokens, with one beam. It names no pages at this time. What it looked for
   * was counted when it started, and is not counted again.
   */
  beginAgain(depths: MatchDepths, tokens: TokenBuffer): void {
    this.reached = Math.max(this.reached, this.history);
    this.depths = Object.freeze({ ...depths });
    this.tokens = tokens;
    this.matched = this.depths.usable;
    this.lookedUp = null;
    this.growth = new RequestGrowth();
    this.quiet = new QuietReach();
    this.committed = this.history = this.capacity = this.matched;
    this.beamWidth = 1;
    this.groups = this.manager.groups.map((rules) => new GroupState(rules));
    this.resumedBefore = false;
    this.hasCommitted = false;
    this.attachedEnd = 0;
    this.seenLosses = this.manager.tree.heldLosses;
    this.lossUntold = true;
    this.beginnings++;
  }

  get numBlocks(): number {
    return divUp(this.capacity, this.manager.config.tokensPerBlock);
  }

  get hasPriority(): boolean {
    return this.#priority !== undefined || this.retention !== null;
  }

  /**
   * Asks for the priority of the snapshots that may be taken at `count` tokens, by this commit or when the request ends
   * there: that of their block. What the caller's function throws goes through; `takeSnapshotPriority` makes the answers count.
   */
  askSnapshotPriority(count: number): void {
    const ordinal = Math.max(0, divUp(count, this.manager.config.tokensPerBlock) - 1);
    for (const group of this.groups)
      if (!group.isAttention && group.publishes) group.askedPriority = this.priorityOf(ordinal, group);
  }

  takeSnapshotPriority(): void {
    for (const group of this.groups) group.snapshotPriority = group.askedPriority;
  }

  /** Eviction priority of a page of a block, 0 … 100. Throws when the caller's function does, or answers anything else. */
  priorityOf(ordinal: number, group: GroupState): number {
    const retained = this.retention?.priorityOf(ordinal);
    if (retained !== undefined) return retained;
    return this.#priority === undefined
      ? DEFAULT_PRIORITY
      : this.manager.askPriority(this.#priority, ordinal, group.rules.lifecycle);
  }

  /** The tree block of a committed full block, or NONE when it is not in the tree (any more). */
  block(ordinal: number): BlockId {
    if (ordinal >= this.#blocks.length) return NONE;
    const block = this.#blocks[ordinal];
    return block !== NONE && this.manager.tree.blocks.generation[block] === this.#generations[ordinal] ? block : NONE;
  }

  setBlock(ordinal: number, block: BlockId): void {
    this.#reserveBlocks(ordinal + 1);
    this.#blocks[ordinal] = block;
    this.#generations[ordinal] = this.manager.tree.blocks.generation[block];
  }

  /** The first `count` blocks of a path that is in the tree. */
  setPath(path: Int32Array, count: number): void {
    this.#reserveBlocks(count);
    const { generation } = this.manager.tree.blocks;
    for (let ordinal = 0; ordinal < count; ordinal++) {
      const block = path[ordinal];
      this.#blocks[ordinal] = block;
      this.#generations[ordinal] = generation[block];
    }
    this.attachedEnd = count;
  }

  #reserveBlocks(count: number): void {
    if (count <= this.#blocks.length) return;
    const length = grownRequestLength(this.#blocks.length, count, this.expectedBlocks);
    this.#blocks = grownColumn(this.#blocks, length, NONE);
    this.#generations = grownColumn(this.#generations, length);
  }
}
