import { divUp, type LayerGroupId } from '@bufferwise/core-policy';
import type { CommitOptions, CreateKvCacheOptions, KvCache, ResumeOptions, ReuseScope } from '../../src/index.ts';
import type { PageBuffer } from './page-buffers.ts';
import type { GroupRole, Stage } from './stage.ts';
import { combined, type Stamp, scopeStamp, type Token, withText, withToken } from './stamp.ts';

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
  /** Tokens that were computed, as far as they were not taken back. */
  readonly #text: Token[];
  /** Stamp of the first n tokens, at n. */
  readonly #prefix: Stamp[];
  /** The mark on what a group holds; undefined where others may share it. */
  readonly #marks: (Stamp | undefined)[];
  #resumed = false;

  /** Opens a request on a prompt; the matched part of it counts as computed. */
  constructor(stage: Stage, prompt: readonly Token[], options: PlayerOptions = {}) {
    this.#stage = stage;
    this.kv = stage.manager.createKvCache({ ...options, tokens: prompt });
    this.#text = prompt.slice(0, this.kv.numCommittedTokens);
    this.#prefix = [scopeStamp(options.scope)];
    for (const token of this.#text) this.#prefix.push(withToken(this.#prefix[this.#prefix.length - 1], token));
    this.#marks = stage.groups.map(() => undefined);
  }

  /** Tokens computed so far. */
  get numComputed(): number {
    return this.#text.length;
  }

  get text(): readonly Token[] {
    return this.#text;
  }

  /**
   * Resumes. The first time it recomputes what the groups that are not reused need of the match; then it checks everything
   * that the next token would read.
   */
  async resume(options?: ResumeOptions): Promise<boolean> {
    if (!(await this.kv.resume(options))) return false;
    if (!this.#resumed) this.#start(options ?? {});
    this.#resumed = true;
    this.verify();
    return true;
  }

  /** Computes tokens behind those computed so far, in pages that a `resize` made room for. Layer by layer, as scratch needs it. */
  compute(tokens: readonly Token[]): void {
    const from = this.#text.length;
    this.#append(tokens);
    const to = this.#text.length;
    for (const layer of this.#stage.layers) {
      for (const buffer of layer) {
        const role = this.#stage.groups[buffer.group];
        if (role.kind === 'ssm') {
          const page = buffer.statePage(this.kv);
          if (from > 0)
            buffer.expectState(page, this.#stamp(buffer.identity, buffer.group, from), `the state after ${from} tokens`);
          buffer.writeState(page, this.#stamp(buffer.identity, buffer.group, to));
          continue;
        }
        const table = buffer.table(this.kv);
        for (let token = from; token < to; token++)
          buffer.write(table, token, this.#stamp(buffer.identity, buffer.group, token + 1));
      }
      for (const buffer of layer) {
        const role = this.#stage.groups[buffer.group];
        if (role.kind === 'attention') this.#expectReadable(buffer, role, from, to);
      }
    }
  }

  /** Writes tokens that somebody else computed, wherever there is a page for them; no room is made and nothing is read. */
  receive(tokens: readonly Token[]): void {
    const from = this.#text.length;
    this.#append(tokens);
    for (const buffer of this.#stage.layers.flat()) {
      const stamp = (count: number) => this.#stamp(buffer.identity, buffer.group, count);
      if (this.#stage.groups[buffer.group].kind === 'ssm') {
        buffer.writeState(buffer.statePage(this.kv), stamp(this.#text.length));
        continue;
      }
      const table = buffer.table(this.kv);
      for (let token = from; token < this.#text.length; token++)
        if (buffer.hasPage(table, token)) buffer.write(table, token, stamp(token + 1));
    }
  }

  /**
   * Tells what is written, makes room for the tokens and computes them, leaving these above the history. False when there is
   * no room; nothing was computed then.
   */
  step(tokens: readonly Token[], spare = 0): boolean {
    if (!this.kv.resize(this.#text.length + tokens.length + spare, this.#text.length)) return false;
    this.compute(tokens);
    return true;
  }

  /** Tells the manager that everything computed is written. */
  settle(capacity: number | null = null): boolean {
    return this.kv.resize(capacity, this.#text.length);
  }

  /** Takes computed tokens back, as a rejected draft is: the state is put back to what it was after `count` tokens. */
  rewind(count: number): void {
    this.#forget(count);
    for (const buffer of this.#stage.layers.flat()) {
      if (this.#stage.groups[buffer.group].kind !== 'ssm') continue;
      buffer.writeState(buffer.statePage(this.kv), this.#stamp(buffer.identity, buffer.group, count));
    }
  }

  /** Commits computed tokens up to `count`, all of them by default. */
  commit(count = this.#text.length, options?: CommitOptions): void {
    this.kv.commit(this.#text.slice(this.kv.numCommittedTokens, count), options);
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
    const count = this.#text.length;
    for (const buffer of this.#stage.layers.flat()) {
      const role = this.#stage.groups[buffer.group];
      if (role.kind === 'attention') this.#expectReadable(buffer, role, count, count);
    }
  }

  /** Checks everything that the next token would read, given the history. */
  verify(): void {
    const { historyLength } = this.kv;
    for (const buffer of this.#stage.layers.flat()) {
      const role = this.#stage.groups[buffer.group];
      if (role.kind === 'attention') this.#expectReadable(buffer, role, historyLength, historyLength);
      else if (this.#text.length > 0) {
        const count = this.#text.length;
        buffer.expectState(
          buffer.statePage(this.kv),
          this.#stamp(buffer.identity, buffer.group, count),
          `the state after ${count} tokens`,
        );
      }
    }
  }

  /** Suspends; what was computed but not told to the manager is taken back, for its scratch is gone. */
  suspend(): void {
    if (this.#text.length > this.kv.historyLength) this.rewind(this.kv.historyLength);
    this.kv.suspend();
  }

  close(): void {
    this.kv.close();
  }

  /** What the first resume leaves to the model: pages and state of groups that do not continue from the match. */
  #start({ optionalReuseGroups = [], rebuiltGroups = [] }: ResumeOptions): void {
    const matched = this.#text.length;
    const { tokensPerBlock } = this.#stage.config;
    this.#stage.groups.forEach((role, group) => {
      const reused = role.policy === 'required' || optionalReuseGroups.includes(group);
      const shared = role.policy !== 'private' && (matched === 0 || reused || rebuiltGroups.includes(group));
      if (!shared) this.#marks[group] = this.#stage.nextMark();
      if (matched > 0 && reused) return;
      for (const buffer of this.#stage.layers.flat()) {
        if (buffer.group !== group) continue;
        if (role.kind === 'ssm') {
          buffer.expectZeroState(buffer.statePage(this.kv));
          if (matched > 0) buffer.writeState(buffer.statePage(this.kv), this.#stamp(buffer.identity, buffer.group, matched));
          continue;
        }
        const table = buffer.table(this.kv);
        for (let token = 0; token < matched; token++) {
          const block = Math.floor(token / tokensPerBlock);
          if (block < role.sinkBlocks || block >= firstWindowBlock(role, matched, tokensPerBlock)) {
            buffer.write(table, token, this.#stamp(buffer.identity, buffer.group, token + 1));
          }
        }
      }
    });
  }

  /** Everything that queries from token `from` on, up to but not including `to`, and at least one, can see before `to`. */
  #expectReadable(buffer: PageBuffer, role: GroupRole, from: number, to: number): void {
    const table = buffer.table(this.kv);
    const sinks = Math.min(to, role.sinkBlocks * this.#stage.config.tokensPerBlock);
    const window = role.windowSize === null ? 0 : Math.max(0, from + 1 - role.windowSize);
    for (let token = 0; token < to; token++) {
      if (token >= sinks && token < window) token = window;
      if (token >= to) break;
      buffer.expect(table, token, this.#stamp(buffer.identity, buffer.group, token + 1), `token ${token} of ${to}`);
    }
  }

  #stamp(identity: Stamp, group: number, count: number): Stamp {
    const stamp = combined(this.#prefix[count], identity);
    const mark = this.#marks[group];
    return mark === undefined ? stamp : combined(stamp, mark);
  }

  #append(tokens: readonly Token[]): void {
    for (const token of tokens) {
      this.#text.push(token);
      this.#prefix.push(withToken(this.#prefix[this.#prefix.length - 1], token));
    }
  }

  #forget(count: number): void {
    this.#text.length = Math.min(this.#text.length, count);
    this.#prefix.length = this.#text.length + 1;
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
