/**
 * The rules of reuse, slow and obvious: what a manager with ample memory matches, shows and publishes.
 *
 * Nothing here is indexed, remembered or shared with the real thing. Matching tries every end of every path; publishing
 * walks from the root each time; blocks without pages are swept away after every call.
 */

/** A group as the rules see it. */
export interface ModelGroup {
  readonly kind: 'attention' | 'ssm';
  readonly policy: 'required' | 'optional' | 'private';
  /** Tokens, or null: attention that sees everything, or state. */
  readonly windowSize: number | null;
  readonly sinkBlocks: number;
}

export interface ReuseModelConfig {
  readonly tokensPerBlock: number;
  /** Index = group id. */
  readonly groups: readonly ModelGroup[];
  readonly commitMinSnapshot: boolean;
  readonly enablePartialReuse: boolean;
  readonly reuseMatchBackoff: number;
  /** Tokens of the scratch margin; null: no scratch. */
  readonly maxRewindLen: number | null;
}

/** A token id, or a digest. */
export type ModelToken = number | Uint8Array;

/** What a call of the real thing is expected to throw: the class of the error. */
export class ModelRefusal extends Error {
  readonly kind: 'StateError' | 'ReuseSelectionError';

  constructor(kind: 'StateError' | 'ReuseSelectionError') {
    super(kind);
    this.kind = kind;
  }
}

export interface ModelStatus {
  readonly complete: boolean;
  readonly endpoint: number;
  readonly coverage: readonly (readonly [number, number])[];
}

/** A stored page, told from others by identity. For attention `count` says for how many tokens of its block it is good. */
interface Page {
  count: number;
}

interface Block {
  readonly tokens: readonly string[];
  readonly children: Block[];
  /** By group. */
  readonly attention: Map<number, Page>;
  /** By group: snapshots by the count inside the block at which they were taken. */
  readonly snapshots: Map<number, Map<number, Page>>;
}

interface Path {
  readonly blocks: readonly Block[];
  /** Tokens that it has in common with the request. */
  readonly end: number;
}

interface Match {
  readonly usable: number;
  readonly withoutState: number;
  readonly path: number;
  readonly blocks: readonly Block[];
}

export class ReuseModel {
  readonly config: ReuseModelConfig;
  /** Requests that are not closed. */
  readonly open = new Set<RequestModel>();
  readonly #roots = new Map<string, Block>();

  constructor(config: ReuseModelConfig) {
    this.config = config;
  }

  /** Pages of a group that exist: listed in a block, or held by a request, or both. */
  numPages(group: number): number {
    const pages = new Set<Page>();
    for (const { holdings } of this.open) {
      for (const page of holdings[group].pages.values()) pages.add(page);
      const { state } = holdings[group];
      if (state !== undefined) pages.add(state);
    }
    const blocks = [...this.#roots.values()];
    for (const block of blocks) {
      blocks.push(...block.children);
      const page = block.attention.get(group);
      if (page !== undefined) pages.add(page);
      for (const snapshot of block.snapshots.get(group)?.values() ?? []) pages.add(snapshot);
    }
    return pages.size;
  }

  /** The match length of a prompt. */
  probe(tokens: readonly ModelToken[], scope: string): number {
    return this.match(tokens.map(word), scope).usable;
  }

  create(tokens: readonly ModelToken[], scope: string): RequestModel {
    const words = tokens.map(word);
    const request = new RequestModel(this, scope, words, this.match(words, scope));
    this.open.add(request);
    return request;
  }

  /** Takes one published page out. Says whether it was there. */
  drop(tokens: readonly ModelToken[], ordinal: number, group: number, scope: string): boolean {
    const { tokensPerBlock, groups } = this.config;
    const words = tokens.map(word);
    const path = [this.root(scope)];
    for (let level = 0; level < ordinal; level++) {
      const next = childWith(path[level], words.slice(level * tokensPerBlock, (level + 1) * tokensPerBlock));
      if (next === undefined || next.tokens.length < tokensPerBlock) return false;
      path.push(next);
    }
    const parent = path[ordinal];
    const piece = words.slice(ordinal * tokensPerBlock, (ordinal + 1) * tokensPerBlock);
    if (piece.length === 0) return false;
    const equal = childWith(parent, piece);
    const { kind, policy, windowSize, sinkBlocks } = groups[group];
    if (kind === 'attention') {
      if (equal === undefined || !equal.attention.delete(group)) return false;
      const everyMatchNeedsIt = policy === 'required' && (windowSize === null || ordinal < sinkBlocks);
      if (everyMatchNeedsIt) parent.children.splice(parent.children.indexOf(equal), 1);
    } else {
      const covering = inTokenOrder(parent.children.filter(({ tokens }) => beginsWith(tokens, piece)));
      const holder = [equal, ...covering].find((block) => block?.snapshots.get(group)?.has(piece.length));
      if (holder === undefined) return false;
      holder.snapshots.get(group)?.delete(piece.length);
    }
    this.sweep();
    return true;
  }

  match(tokens: readonly string[], scope: string): Match {
    const paths = this.#paths(tokens, scope);
    const backedOff = ({ end }: Path) => end - this.config.reuseMatchBackoff;
    const usable = paths.map((path) => this.#largestEnd(path, backedOff(path), true));
    const best = Math.max(0, ...usable);
    const chosen = this.#preferred(
      paths,
      paths.filter((_, index) => usable[index] === best),
      best,
    );
    return {
      usable: best,
      withoutState: Math.max(0, ...paths.map((path) => this.#largestEnd(path, backedOff(path), false))),
      path: Math.max(0, ...paths.map(({ end }) => end)),
      blocks: best === 0 ? [] : chosen.blocks.slice(0, Math.ceil(best / this.config.tokensPerBlock)),
    };
  }

  root(scope: string): Block {
    const known = this.#roots.get(scope) ?? newBlock([]);
    this.#roots.set(scope, known);
    return known;
  }

  /** The block of the full piece at `ordinal` with all before it, put in where they are missing. */
  ensure(tokens: readonly string[], ordinal: number, scope: string): Block {
    const { tokensPerBlock } = this.config;
    let block = this.root(scope);
    for (let level = 0; level <= ordinal; level++) {
      const piece = tokens.slice(level * tokensPerBlock, (level + 1) * tokensPerBlock);
      block = childWith(block, piece) ?? this.insert(block, piece);
    }
    return block;
  }

  find(tokens: readonly string[], ordinal: number, scope: string): Block | undefined {
    const { tokensPerBlock } = this.config;
    let block: Block | undefined = this.root(scope);
    for (let level = 0; level <= ordinal && block !== undefined; level++) {
      block = childWith(block, tokens.slice(level * tokensPerBlock, (level + 1) * tokensPerBlock));
    }
    return block;
  }

  /** Adds a block; a partial sibling that is its beginning hands over its pages and goes. */
  insert(parent: Block, piece: readonly string[]): Block {
    const block = newBlock(piece);
    for (const sibling of [...parent.children]) {
      if (!beginsWith(piece, sibling.tokens)) continue;
      for (const [group, page] of sibling.attention) block.attention.set(group, page);
      for (const [group, counts] of sibling.snapshots) block.snapshots.set(group, counts);
      parent.children.splice(parent.children.indexOf(sibling), 1);
    }
    parent.children.push(block);
    return block;
  }

  /** A block counts only while it or a descendant has a page. */
  sweep(): void {
    const counts = (block: Block): boolean => {
      block.children.splice(0, block.children.length, ...block.children.filter(counts));
      const hasSnapshot = [...block.snapshots.values()].some((snapshots) => snapshots.size > 0);
      return block.attention.size > 0 || hasSnapshot || block.children.length > 0;
    };
    for (const root of this.#roots.values()) counts(root);
  }

  /** Whether tokens behind the first `numTokens` read the block. */
  isLive(group: number, ordinal: number, numTokens: number): boolean {
    const [begin, end] = this.stale(group, numTokens);
    return ordinal < begin || ordinal >= end;
  }

  stale(group: number, numTokens: number): [number, number] {
    const { windowSize, sinkBlocks } = this.config.groups[group];
    const begin = Math.min(Math.ceil(numTokens / this.config.tokensPerBlock), sinkBlocks);
    if (windowSize === null) return [begin, begin];
    return [begin, Math.max(begin, Math.floor((numTokens + 1 - windowSize) / this.config.tokensPerBlock))];
  }

  /**
   * Of paths that are usable up to the same end: one of equal blocks up to there, else one that has optional state there,
   * else the first.
   */
  #preferred([equal]: readonly Path[], tied: readonly Path[], end: number): Path {
    const last = Math.max(0, Math.ceil(end / this.config.tokensPerBlock) - 1);
    const state = this.config.groups.findIndex(({ kind, policy }) => kind === 'ssm' && policy === 'optional');
    return (
      tied.find(({ blocks }) => end === 0 || blocks[last] === equal.blocks[last]) ??
      tied.find(({ blocks }) => state >= 0 && this.supplies(state, blocks, end)) ??
      tied[0]
    );
  }

  /** The path of equal blocks first, then siblings with a common beginning: longest first, then those before the tokens, nearest first. */
  #paths(tokens: readonly string[], scope: string): Path[] {
    const { tokensPerBlock, enablePartialReuse } = this.config;
    const blocks: Block[] = [];
    const siblings: Path[] = [];
    let parent = this.root(scope);
    let end = 0;
    while (end < tokens.length) {
      const piece = tokens.slice(end, end + tokensPerBlock);
      const equal = childWith(parent, piece);
      if (enablePartialReuse) {
        const before = inTokenOrder(parent.children.filter((child) => compare(child.tokens, piece) < 0)).reverse();
        const behind = inTokenOrder(parent.children.filter((child) => compare(child.tokens, piece) > 0));
        for (const child of [...before, ...behind]) {
          const common = commonBeginning(child.tokens, piece);
          if (common > 0) siblings.push({ blocks: [...blocks, child], end: end + common });
        }
      }
      if (equal === undefined) break;
      blocks.push(equal);
      end += piece.length;
      parent = equal;
    }
    return [{ blocks, end }, ...siblings.sort((a, b) => b.end - a.end)];
  }

  #largestEnd(path: Path, limit: number, withState: boolean): number {
    for (let end = limit; end > 0; end--) if (this.#holds(path, end, withState)) return end;
    return 0;
  }

  /** Whether every required group has what a request needs that continues at `end`. */
  #holds({ blocks }: Path, end: number, withState: boolean): boolean {
    return this.config.groups.every(({ kind, policy }, group) => {
      if (policy !== 'required' || (kind === 'ssm' && !withState)) return true;
      return this.supplies(group, blocks, end);
    });
  }

  supplies(group: number, blocks: readonly Block[], end: number): boolean {
    const { tokensPerBlock, groups } = this.config;
    const numBlocks = Math.ceil(end / tokensPerBlock);
    const inBlock = (ordinal: number) => Math.min(tokensPerBlock, end - ordinal * tokensPerBlock);
    if (groups[group].kind === 'ssm') return blocks[numBlocks - 1].snapshots.get(group)?.has(inBlock(numBlocks - 1)) ?? false;
    for (let ordinal = 0; ordinal < numBlocks; ordinal++) {
      if (!this.isLive(group, ordinal, end)) continue;
      if ((blocks[ordinal].attention.get(group)?.count ?? 0) < inBlock(ordinal)) return false;
    }
    return true;
  }
}

/** What one request has of one group. */
interface Holding {
  complete: boolean;
  rebuilt: boolean;
  publishes: boolean;
  /** By block ordinal. */
  pages: Map<number, Page>;
  /** The claimed snapshot, then the request's own state. */
  state: Page | undefined;
  /** Scratch blocks of the present step, half-open. */
  scratch: readonly [number, number];
}

export class RequestModel {
  readonly match: Match;
  readonly status: readonly ModelStatus[];
  readonly holdings: Holding[];
  state: 'suspended' | 'active' | 'closed' = 'suspended';
  committed: number;
  history: number;
  capacity: number;
  readonly #model: ReuseModel;
  readonly #scope: string;
  readonly #tokens: string[];
  #resumedBefore = false;
  #hasCommitted = false;
  #mayCommit = true;
  #ended = false;

  constructor(model: ReuseModel, scope: string, tokens: readonly string[], match: Match) {
    const { groups } = model.config;
    this.#model = model;
    this.#scope = scope;
    this.match = match;
    this.#tokens = tokens.slice(0, match.usable);
    this.committed = this.history = this.capacity = match.usable;
    this.holdings = groups.map((_, group) => ({
      complete: this.#isComplete(group),
      rebuilt: false,
      publishes: false,
      pages: new Map(),
      state: undefined,
      scratch: [0, 0],
    }));
    this.holdings.forEach((holding, group) => {
      const { complete, pages } = holding;
      if (!complete) return;
      if (groups[group].kind === 'ssm') {
        const last = match.blocks.length - 1;
        holding.state = match.blocks[last].snapshots.get(group)?.get(match.usable - last * model.config.tokensPerBlock);
        return;
      }
      match.blocks.forEach((block, ordinal) => {
        const page = block.attention.get(group);
        if (page !== undefined && model.isLive(group, ordinal, match.usable)) pages.set(ordinal, page);
      });
    });
    this.status = this.holdings.map(({ complete }, group) => this.#statusOf(complete, group));
  }

  /** The blocks that show an index to a consumer. */
  shownBlocks(group: number): number[] {
    if (this.state !== 'active') return [];
    const shown = [...this.holdings[group].pages.keys()].filter((ordinal) => this.#model.isLive(group, ordinal, this.history));
    return shown.sort((a, b) => a - b);
  }

  checkSelection(selected: readonly number[] | undefined, rebuilt: readonly number[] | undefined): void {
    if (this.state !== 'suspended') throw new ModelRefusal('StateError');
    const isOptional = (group: number) => this.#model.config.groups[group]?.policy === 'optional';
    const refused =
      (this.#resumedBefore && (selected !== undefined || rebuilt !== undefined)) ||
      selected?.some((group) => !isOptional(group) || !this.holdings[group].complete) ||
      rebuilt?.some((group) => !isOptional(group) || selected?.includes(group));
    if (refused) throw new ModelRefusal('ReuseSelectionError');
  }

  resume(selected?: readonly number[], rebuilt?: readonly number[]): void {
    this.checkSelection(selected, rebuilt);
    const { groups, tokensPerBlock } = this.#model.config;
    const matched = this.match.usable;
    if (!this.#resumedBefore) {
      this.holdings.forEach((holding, group) => {
        const { policy, kind } = groups[group];
        const reused = holding.complete && (policy === 'required' || (selected ?? []).includes(group));
        holding.rebuilt = (rebuilt ?? []).includes(group);
        holding.publishes = policy === 'required' || (policy === 'optional' && (matched === 0 || reused || holding.rebuilt));
        if (kind === 'ssm') {
          holding.state = { count: 0 };
          return;
        }
        const numBlocks = Math.ceil(matched / tokensPerBlock);
        if (!reused) {
          holding.pages.clear();
          for (let ordinal = 0; ordinal < numBlocks; ordinal++) {
            if (this.#model.isLive(group, ordinal, matched)) holding.pages.set(ordinal, { count: 0 });
          }
        } else if (matched % tokensPerBlock > 0) holding.pages.set(numBlocks - 1, { count: 0 });
      });
    }
    this.#resumedBefore = true;
    this.state = 'active';
    this.#takeScratch();
    this.#letGo();
  }

  suspend(): void {
    if (this.state !== 'active') throw new ModelRefusal('StateError');
    this.state = 'suspended';
    for (const holding of this.holdings) holding.scratch = [0, 0];
  }

  resize(capacity: number, history: number): void {
    const rewind = this.#model.config.maxRewindLen ?? 0;
    const refused =
      this.state !== 'active' ||
      this.#ended ||
      history < this.history ||
      history > capacity ||
      (this.#hasScratch() && capacity !== this.capacity && history < this.capacity - rewind);
    if (refused) throw new ModelRefusal('StateError');
    const { tokensPerBlock, groups } = this.#model.config;
    const oldBlocks = Math.ceil(this.capacity / tokensPerBlock);
    const newBlocks = Math.ceil(capacity / tokensPerBlock);
    this.capacity = capacity;
    this.history = history;
    this.#takeScratch();
    this.holdings.forEach(({ pages, scratch }, group) => {
      if (groups[group].kind === 'ssm') return;
      for (let ordinal = newBlocks; ordinal < oldBlocks; ordinal++) pages.delete(ordinal);
      // What turns into scratch was never written, or will be written again in scratch slots.
      for (let ordinal = scratch[0]; ordinal < scratch[1]; ordinal++) pages.delete(ordinal);
      for (let ordinal = oldBlocks; ordinal < newBlocks; ordinal++) {
        const isScratch = ordinal >= scratch[0] && ordinal < scratch[1];
        if (!isScratch && this.#model.isLive(group, ordinal, this.#keptAt(group, history))) pages.set(ordinal, { count: 0 });
      }
    });
    this.#letGo();
  }

  commit(tokens: readonly ModelToken[], options: { end?: boolean; snapshot?: boolean } = {}): void {
    if (this.state !== 'active') throw new ModelRefusal('StateError');
    if (tokens.length === 0) {
      if (!options.end) return;
      this.#finish('move');
      this.#ended = true;
      return;
    }
    const { tokensPerBlock, commitMinSnapshot, maxRewindLen } = this.#model.config;
    const before = this.committed;
    const after = before + tokens.length;
    const cutsScratch = this.#hasScratch() && Math.max(this.history, after) < this.capacity - (maxRewindLen ?? 0);
    if (!this.#mayCommit || after > this.capacity || cutsScratch) throw new ModelRefusal('StateError');
    const stateIsThere = options.snapshot === true || this.history <= after;
    this.#tokens.push(...tokens.map(word));
    this.history = Math.max(this.history, after);
    this.#takeScratch();
    this.#letGo();

    this.#restore(after);
    if (!this.#hasCommitted) this.#publishRebuilt();
    for (let ordinal = Math.floor(before / tokensPerBlock); (ordinal + 1) * tokensPerBlock <= after; ordinal++) {
      this.#model.ensure(this.#tokens, ordinal, this.#scope);
      this.#publishFull(ordinal);
    }
    this.committed = after;
    this.#hasCommitted = true;
    if (options.end) {
      this.#publishTail('move', stateIsThere);
      this.#mayCommit = false;
      this.#ended = true;
    } else if (commitMinSnapshot && options.snapshot !== false) this.#publishTail('copy', stateIsThere);
    this.#model.sweep();
    this.#letGo();
  }

  stopCommitting(): void {
    if (this.state === 'closed') throw new ModelRefusal('StateError');
    this.#finish('copy');
  }

  close(): void {
    if (this.state === 'closed') return;
    this.#finish('move');
    this.state = 'closed';
    this.#model.open.delete(this);
    for (const holding of this.holdings) {
      holding.pages.clear();
      holding.state = undefined;
      holding.scratch = [0, 0];
    }
  }

  #isComplete(group: number): boolean {
    const { groups, tokensPerBlock } = this.#model.config;
    const { policy, kind } = groups[group];
    const { usable, blocks } = this.match;
    if (usable === 0 || policy === 'private') return false;
    if (policy === 'optional' && kind === 'attention' && usable % tokensPerBlock > 0) return false;
    return this.#model.supplies(group, blocks, usable);
  }

  #statusOf(complete: boolean, group: number): ModelStatus {
    if (!complete) return { complete, endpoint: 0, coverage: [] };
    const { tokensPerBlock, groups } = this.#model.config;
    const endpoint = this.match.usable;
    if (groups[group].kind === 'ssm') return { complete, endpoint, coverage: [[0, endpoint]] };
    const [begin, end] = this.#model.stale(group, endpoint);
    const sinks = Math.min(endpoint, begin * tokensPerBlock);
    const window = Math.min(endpoint, end * tokensPerBlock);
    if (sinks === window) return { complete, endpoint, coverage: [[0, endpoint]] };
    const ranges: [number, number][] = [
      [0, sinks],
      [window, endpoint],
    ];
    return { complete, endpoint, coverage: ranges.filter(([from, to]) => from < to) };
  }

  #hasScratch(): boolean {
    return this.holdings.some(({ scratch: [begin, end] }) => begin < end);
  }

  #takeScratch(): void {
    this.holdings.forEach((holding, group) => {
      holding.scratch = this.#scratchRange(group);
    });
  }

  #scratchRange(group: number): [number, number] {
    const { groups, tokensPerBlock, maxRewindLen } = this.#model.config;
    const { kind, windowSize, policy } = groups[group];
    if (maxRewindLen === null || kind === 'ssm' || windowSize === null) return [0, 0];
    let settled = Math.max(0, this.capacity - maxRewindLen);
    if (policy === 'optional') settled -= settled % tokensPerBlock;
    const [staleBegin, staleEnd] = this.#model.stale(group, settled);
    const begin = Math.max(staleBegin, Math.ceil(this.history / tokensPerBlock));
    const end = Math.min(staleEnd, Math.ceil(this.capacity / tokensPerBlock));
    return begin < end ? [begin, end] : [0, 0];
  }

  /** Optional windows also serve their last whole block when only what a match needs is published. */
  #keptAt(group: number, numTokens: number): number {
    const { groups, commitMinSnapshot, tokensPerBlock } = this.#model.config;
    const { policy, windowSize } = groups[group];
    return commitMinSnapshot && policy === 'optional' && windowSize !== null
      ? numTokens - (numTokens % tokensPerBlock)
      : numTokens;
  }

  /** Pages that no later token reads go, unless they wait to be published. */
  #letGo(): void {
    const { groups, tokensPerBlock, commitMinSnapshot } = this.#model.config;
    this.holdings.forEach(({ pages, publishes, rebuilt }, group) => {
      if (groups[group].kind === 'ssm') return;
      for (const ordinal of [...pages.keys()]) {
        if (this.#model.isLive(group, ordinal, this.#keptAt(group, this.history))) continue;
        const isUncommitted = !commitMinSnapshot && (ordinal + 1) * tokensPerBlock > this.committed;
        const isRebuilt = rebuilt && !this.#hasCommitted && ordinal * tokensPerBlock < this.match.usable;
        const waits = publishes && this.#mayCommit && (isUncommitted || isRebuilt);
        if (!waits) pages.delete(ordinal);
      }
    });
  }

  /** Lists the request's pages of a full block that lacks them; takes the listed one instead of an own one that is not needed. */
  #publishFull(ordinal: number, only?: (group: number) => boolean): void {
    const { groups, tokensPerBlock } = this.#model.config;
    this.holdings.forEach(({ pages, publishes }, group) => {
      const page = pages.get(ordinal);
      if (groups[group].kind === 'ssm' || !publishes || page === undefined || (only !== undefined && !only(group))) return;
      const block = this.#model.ensure(this.#tokens, ordinal, this.#scope);
      const listed = block.attention.get(group);
      if (listed === undefined || listed.count < tokensPerBlock) {
        page.count = tokensPerBlock;
        block.attention.set(group, page);
      } else if (this.#model.isLive(group, ordinal, this.#keptAt(group, this.history))) pages.set(ordinal, listed);
      else pages.delete(ordinal);
    });
  }

  #restore(count: number): void {
    for (let ordinal = 0; (ordinal + 1) * this.#model.config.tokensPerBlock <= this.committed; ordinal++) {
      this.#publishFull(ordinal, (group) => this.#model.isLive(group, ordinal, this.#keptAt(group, count)));
    }
  }

  #publishRebuilt(): void {
    for (let ordinal = 0; (ordinal + 1) * this.#model.config.tokensPerBlock <= this.match.usable; ordinal++) {
      this.#publishFull(ordinal, (group) => this.holdings[group].rebuilt);
    }
  }

  /** Lists the pages of the partial last block and the state after the last committed token, where they are wanted. */
  #publishTail(how: 'copy' | 'move', stateIsThere: boolean): void {
    const { groups, tokensPerBlock } = this.#model.config;
    const ordinal = Math.ceil(this.committed / tokensPerBlock) - 1;
    const piece = this.#tokens.slice(ordinal * tokensPerBlock, this.committed);
    const isPartial = piece.length < tokensPerBlock;
    const given = this.holdings.flatMap(({ publishes, pages }, group) => {
      if (!publishes) return [];
      if (groups[group].kind === 'ssm') return stateIsThere ? [group] : [];
      return isPartial && groups[group].policy === 'required' && pages.has(ordinal) ? [group] : [];
    });
    const wanted = (block: Block) =>
      given.filter((group) =>
        groups[group].kind === 'ssm'
          ? !block.snapshots.get(group)?.has(piece.length)
          : (block.attention.get(group)?.count ?? 0) < piece.length,
      );
    const known = this.#tailBlock(ordinal, piece, wanted);
    const listed = known === undefined ? given : wanted(known);
    if (listed.length === 0) return;
    const parent = ordinal === 0 ? this.#model.root(this.#scope) : this.#model.ensure(this.#tokens, ordinal - 1, this.#scope);
    const block = this.#tailBlock(ordinal, piece, wanted) ?? this.#model.insert(parent, piece);
    for (const group of wanted(block)) {
      const { pages, state } = this.holdings[group];
      const own = groups[group].kind === 'ssm' ? state : pages.get(ordinal);
      const page = how === 'move' && own !== undefined ? own : { count: 0 };
      page.count = piece.length;
      if (groups[group].kind === 'attention') block.attention.set(group, page);
      else block.snapshots.set(group, (block.snapshots.get(group) ?? new Map()).set(piece.length, page));
    }
  }

  /** The block of exactly the tail, else the one that covers it where most pages find room. */
  #tailBlock(ordinal: number, piece: readonly string[], wanted: (block: Block) => number[]): Block | undefined {
    const parent = ordinal === 0 ? this.#model.root(this.#scope) : this.#model.find(this.#tokens, ordinal - 1, this.#scope);
    if (parent === undefined) return undefined;
    const equal = childWith(parent, piece);
    if (equal !== undefined) return equal;
    const covering = inTokenOrder(parent.children.filter(({ tokens }) => beginsWith(tokens, piece)));
    const room = covering.map((block) => wanted(block).length);
    return covering[room.indexOf(Math.max(...room))];
  }

  #finish(how: 'copy' | 'move'): void {
    if (!this.#mayCommit) return;
    if (this.#hasCommitted) {
      this.#restore(this.committed);
      this.#publishTail(how, this.capacity === this.history && this.history === this.committed);
    }
    this.#mayCommit = false;
    this.#model.sweep();
    this.#letGo();
  }
}

function newBlock(tokens: readonly string[]): Block {
  return { tokens, children: [], attention: new Map(), snapshots: new Map() };
}

/** A token as a text, such that the order of texts is the order of ids, and digests stand apart. */
function word(token: ModelToken): string {
  if (typeof token === 'number') return token.toString(16).padStart(8, '0');
  const bytes = [...token].map((byte) => byte.toString(16).padStart(2, '0'));
  const first = bytes.slice(0, 4).reverse().join('');
  return `${first}#${bytes.join('')}`;
}

function childWith(parent: Block, piece: readonly string[]): Block | undefined {
  return parent.children.find(({ tokens }) => tokens.length === piece.length && beginsWith(tokens, piece));
}

function beginsWith(tokens: readonly string[], beginning: readonly string[]): boolean {
  return beginning.every((token, index) => tokens[index] === token);
}

function commonBeginning(a: readonly string[], b: readonly string[]): number {
  let common = 0;
  while (common < a.length && common < b.length && a[common] === b[common]) common++;
  return common;
}

/** Token by token; a beginning stands before what it begins. */
function compare(a: readonly string[], b: readonly string[]): number {
  const common = commonBeginning(a, b);
  if (common === a.length || common === b.length) return a.length - b.length;
  return a[common] < b[common] ? -1 : 1;
}

function inTokenOrder(blocks: readonly Block[]): Block[] {
  return [...blocks].sort((a, b) => compare(a.tokens, b.tokens));
}
