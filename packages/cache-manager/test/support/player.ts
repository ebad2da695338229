import { divUp, type LayerGroupId } from '@bufferwise/core-policy';
import type { CommitOptions, CreateKvCacheOptions, ForkOptions, KvCache, ResumeOptions, ReuseScope } from '../../src/index.ts';
import { Line } from './line.ts';
import type { PageBuffer } from './page-buffers.ts';
import type { GroupRole, Stage } from './stage.ts';
import { type Stamp, scopeStamp, type Token, withText } from './stamp.ts';

export interface PlayerOptions extends Omit<CreateKvCacheOptions, 'tokens' | 'scope'> {
  scope?: ReuseScope;
}

/**
 * Plays a model on one request: writes a stamp wherever a model would write, and checks the stamp of everything that a
 * model would read. A page that was shared wrongly, kept too short or handed out twice shows as a wrong stamp.
 *
 * What a group computes from a history it did not rebuild is marked as this request's own, so that it fails whoever else
 * gets to read it.
 */
export class Player {
  readonly kv: KvCache;
  readonly #stage: Stage;
  /** What each beam computes. */
  #lines: Line[];
  #resumed = false;

  /** Plays on a request that stands behind the tokens of a line. */
  private constructor(stage: Stage, kv: KvCache, line: Line) {
    this.#stage = stage;
    this.kv = kv;
    this.#lines = [line];
  }

  /** Opens a request on a prompt; the matched part of it counts as computed. */
  static open(stage: Stage, prompt: readonly Token[], options: PlayerOptions = {}): Player {
    const kv = stage.manager.createKvCache({ ...options, tokens: prompt });
    const matched = prompt.slice(0, kv.numCommittedTokens);
    return new Player(stage, kv, new Line(scopeStamp(options.scope), matched, stage.groups.length));
  }

  /** Tokens computed so far, by every beam. */
  get numComputed(): number {
    return this.text.length;
  }

  /** What beam 0 has computed. */
  get text(): readonly Token[] {
    return this.#lines[0].text;
  }

  /** What each beam has computed. */
  get texts(): readonly (readonly Token[])[] {
    return this.#lines.map(({ text }) => text);
  }

  /**
   * Resumes. The first time it recomputes what the groups that are not reused need of the match; then it checks everything
   * that the next token would read.
   */
  async resume(options?: ResumeOptions): Promise<boolean> {
    if (!(await this.kv.resume(options))) return false;
    // It may have been closed before the answer was read.
    if (this.kv.status !== 'active') return true;
    if (!this.#resumed) this.#start(options ?? {});
    this.#resumed = true;
    this.verify();
    return true;
  }

  /** Computes tokens behind those computed so far, in pages that a `resize` made room for. Layer by layer, as scratch needs it. */
  compute(tokens: readonly Token[], beam = 0): void {
    const line = this.#lines[beam];
    const from = line.text.length;
    line.append(tokens);
    const to = line.text.length;
    for (const layer of this.#stage.layers) {
      for (const buffer of layer) {
        const { kind } = this.#stage.groups[buffer.group];
        const stamp = (count: number) => line.stamp(buffer.identity, buffer.group, count);
        if (kind === 'ssm') {
          const page = buffer.statePage(this.kv, beam);
          if (from > 0) buffer.expectState(page, stamp(from), `the state after ${from} tokens`);
          buffer.writeState(page, stamp(to));
          continue;
        }
        const table = buffer.table(this.kv, beam);
        for (let token = from; token < to; token++) buffer.write(table, token, stamp(token + 1));
      }
      for (const buffer of layer) {
        if (this.#stage.groups[buffer.group].kind === 'attention') this.#expectReadable(buffer, beam, from, to);
      }
    }
  }

  /** Writes tokens that somebody else computed, wherever there is a page for them; no room is made and nothing is read. */
  receive(tokens: readonly Token[]): void {
    const [line] = this.#lines;
    const from = line.text.length;
    line.append(tokens);
    for (const buffer of this.#stage.layers.flat()) {
      const stamp = (count: number) => line.stamp(buffer.identity, buffer.group, count);
      if (this.#stage.groups[buffer.group].kind === 'ssm') {
        buffer.writeState(buffer.statePage(this.kv), stamp(line.text.length));
        continue;
      }
      const table = buffer.table(this.kv);
      for (let token = from; token < line.text.length; token++)
        if (buffer.hasPage(table, token)) buffer.write(table, token, stamp(token + 1));
    }
  }

  /**
   * Tells what is written, makes room for the tokens and computes them, leaving these above the history. False when there is
   * no room; nothing was computed then.
   */
  step(tokens: readonly Token[], spare = 0): boolean {
    if (!this.kv.resize(this.numComputed + tokens.length + spare, this.numComputed)) return false;
    this.compute(tokens);
    return true;
  }

  /** Tells the manager that everything computed is written. */
  settle(capacity: number | null = null): boolean {
    return this.kv.resize(capacity, this.numComputed);
  }

  /** Takes computed tokens back, as a rejected draft is: the state is put back to what it was after `count` tokens. */
  rewind(count: number): void {
    this.#lines.forEach((line, beam) => {
      line.forget(count);
      for (const buffer of this.#stage.layers.flat()) {
        if (this.#stage.groups[buffer.group].kind !== 'ssm') continue;
        buffer.writeState(buffer.statePage(this.kv, beam), line.stamp(buffer.identity, buffer.group, count));
      }
    });
  }

  /** A step of several beams, of as many tokens each. False when there is no room; nothing was computed then. */
  stepBeams(tokens: readonly (readonly Token[])[], spare = 0): boolean {
    if (!this.kv.resize(this.numComputed + tokens[0].length + spare, this.numComputed)) return false;
    for (const [beam, each] of tokens.entries()) this.compute(each, beam);
    return true;
  }

  /** Lets beams continue from others, all of them from what the manager was told, and checks what each would read. False when there is no room. */
  reorderBeams(parents: readonly number[]): boolean {
    if (!this.kv.reorderBeams(parents)) return false;
    this.#part(parents);
    return true;
  }

  forkBeams(width: number): boolean {
    if (!this.kv.forkBeams(width)) return false;
    this.#part(Array.from({ length: width }, (_, beam) => (beam < this.#lines.length ? beam : 0)));
    return true;
  }

  keepBeam(beam: number): void {
    this.kv.keepBeam(beam);
    this.#part([beam]);
  }

  /** A request that continues where this one is, and what it would read checked. Null when there is no room. */
  fork(options: ForkOptions = {}): Player | null {
    const kv = this.kv.fork(options);
    if (kv === null) return null;
    const forked = new Player(
      this.#stage,
      kv,
      this.#lines[0].parted(() => this.#stage.nextMark()),
    );
    forked.#resumed = true;
    this.#stage.join(forked);
    forked.verify();
    return forked;
  }

  /** Commits computed tokens up to `count`, all of them by default. */
  commit(count = this.numComputed, options?: CommitOptions): void {
    this.kv.commit(this.text.slice(this.kv.numCommittedTokens, count), options);
  }

  /** Room, computation and commit in one. False when there is no room. */
  extend(tokens: readonly Token[], options?: CommitOptions): boolean {
    if (!this.step(tokens)) return false;
    this.commit(undefined, options);
    return true;
  }

  get hasResumed(): boolean {
    return this.#resumed;
  }

  /** Checks everything that is computed and that the token behind it would read. Not while there is scratch. */
  verifyAll(): void {
    const hasScratch = this.#stage.groups.some((_, group) => this.kv.scratch(group as LayerGroupId) !== null);
    if (hasScratch) return;
    this.#lines.forEach((_, beam) => void this.#verifyAttention(beam, this.numComputed));
  }

  /** Checks everything that the next token would read, given the history. */
  verify(): void {
    const count = this.numComputed;
    this.#lines.forEach((line, beam) => {
      this.#verifyAttention(beam, this.kv.historyLength);
      for (const buffer of this.#stage.layers.flat()) {
        if (this.#stage.groups[buffer.group].kind !== 'ssm' || count === 0) continue;
        const page = buffer.statePage(this.kv, beam);
        buffer.expectState(page, line.stamp(buffer.identity, buffer.group, count), `the state after ${count} tokens`);
      }
    });
  }

  /** Suspends; what was computed but not told to the manager is taken back, for its scratch is gone. */
  suspend(): void {
    if (this.numComputed > this.kv.historyLength) this.rewind(this.kv.historyLength);
    this.kv.suspend();
  }

  close(): void {
    this.kv.close();
  }

  /** Takes note that the request lost pages and began again: what it has not left is not computed any more. */
  beginAgain(): void {
    const [line] = this.#lines;
    this.#lines = [line.again(this.kv.historyLength)];
    this.#resumed = false;
  }

  /** What the first resume leaves to the model: pages and state of groups that do not continue from the match. */
  #start({ optionalReuseGroups = [], rebuiltGroups = [] }: ResumeOptions): void {
    const matched = this.numComputed;
    const { tokensPerBlock } = this.#stage.config;
    const [line] = this.#lines;
    this.#stage.groups.forEach((role, group) => {
      const reused = role.policy === 'required' || optionalReuseGroups.includes(group);
      const shared = role.policy !== 'private' && (matched === 0 || reused || rebuiltGroups.includes(group));
      if (!shared) line.mark(group, this.#stage.nextMark(), 0);
      if (matched > 0 && reused) return;
      for (const buffer of this.#stage.layers.flat()) {
        if (buffer.group !== group) continue;
        if (role.kind === 'ssm') {
          buffer.expectZeroState(buffer.statePage(this.kv));
          if (matched > 0) buffer.writeState(buffer.statePage(this.kv), line.stamp(buffer.identity, buffer.group, matched));
          continue;
        }
        const table = buffer.table(this.kv);
        for (let token = 0; token < matched; token++) {
          const block = Math.floor(token / tokensPerBlock);
          if (block < role.sinkBlocks || block >= firstWindowBlock(role, matched, tokensPerBlock)) {
            buffer.write(table, token, line.stamp(buffer.identity, buffer.group, token + 1));
          }
        }
      }
    });
  }

  #part(parents: readonly number[]): void {
    const taken = new Set<number>();
    this.#lines = parents.map((parent) => {
      const isFirst = !taken.has(parent);
      taken.add(parent);
      return isFirst ? this.#lines[parent] : this.#lines[parent].parted(() => this.#stage.nextMark());
    });
    this.verify();
  }

  #verifyAttention(beam: number, count: number): void {
    for (const buffer of this.#stage.layers.flat()) {
      if (this.#stage.groups[buffer.group].kind === 'attention') this.#expectReadable(buffer, beam, count, count);
    }
  }

  /** Everything that queries from token `from` on, up to but not including `to`, and at least one, can see before `to`. */
  #expectReadable(buffer: PageBuffer, beam: number, from: number, to: number): void {
    const line = this.#lines[beam];
    const role = this.#stage.groups[buffer.group];
    const table = buffer.table(this.kv, beam);
    const sinks = Math.min(to, role.sinkBlocks * this.#stage.config.tokensPerBlock);
    const window = role.windowSize === null ? 0 : Math.max(0, from + 1 - role.windowSize);
    for (let token = 0; token < to; token++) {
      if (token >= sinks && token < window) token = window;
      if (token >= to) break;
      buffer.expect(
        table,
        token,
        line.stamp(buffer.identity, buffer.group, token + 1),
        `token ${token} of ${to} in beam ${beam}`,
      );
    }
  }
}

/** First block of the live window, by the words of the rule: the one that holds the earliest token the next query sees. */
function firstWindowBlock({ windowSize }: GroupRole, numTokens: number, tokensPerBlock: number): number {
  if (windowSize === null) return 0;
  const first = Math.max(0, numTokens + 1 - windowSize);
  return Math.min(Math.floor(first / tokensPerBlock), divUp(numTokens, tokensPerBlock));
}

/** A stamp that stands for one request's own content. */
export function markStamp(number: number): Stamp {
  return withText(scopeStamp(undefined), `own content ${number}`);
}
