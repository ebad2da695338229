import { limitsMatch, matchNeeds } from '@bufferwise/core-policy';
import type { TransferLayout } from '../transfer/transfer-layout.ts';
import type { ControlMessage } from './control-message.ts';

/** What a worker has of a prompt, in tokens. */
export interface PrefixReuse {
  /** Tokens that it need not compute: where all required groups can go on. */
  readonly endpoint: number;
  /**
   * By required group of the layout: of what is live at the end of the prompt, the part that is there, as tokens of the prompt. A request
   * that moves to this worker brings only the rest.
   */
  readonly held: readonly number[];
}

interface Announced {
  session: string;
  /** Number of the next message; null while some were missed. */
  next: number | null;
  /** By hash: bits of the groups. The longest known come first. */
  blocks: Map<string, number>;
}

type BlocksMessage = ControlMessage & { kind: 'blocks' };

/**
 * Which worker has which blocks of which group, by what the workers announce: a hint for routing, never a promise. Bounded: what was
 * announced longest ago by the worker that announced most is forgotten first. No I/O.
 */
export class PrefixIndex {
  readonly #layout: TransferLayout;
  readonly #mostBlocks: number;
  readonly #workers = new Map<string, Announced>();
  #numBlocks = 0;

  constructor(options: { layout: TransferLayout; mostBlocks: number }) {
    this.#layout = options.layout;
    this.#mostBlocks = options.mostBlocks;
  }

  /** Blocks that are known, each once for each worker that has it. */
  get numBlocks(): number {
    return this.#numBlocks;
  }

  /** A worker is there; what it has is what it announces from number 0 on. */
  open(worker: string, session: string): void {
    if (this.#workers.get(worker)?.session === session) return;
    this.forget(worker);
    this.#workers.set(worker, { session, next: 0, blocks: new Map() });
  }

  forget(worker: string): void {
    const announced = this.#workers.get(worker);
    if (announced === undefined) return;
    this.#numBlocks -= announced.blocks.size;
    this.#workers.delete(worker);
  }

  /** Takes what a worker announces. Whether some of it was missed is for `isBehind` to say. */
  take(worker: string, session: string, { number, fresh, changes }: BlocksMessage): void {
    const announced = this.#workers.get(worker);
    if (announced?.session !== session) return;
    if (fresh ? number < (announced.next ?? 0) : announced.next === null || number < announced.next) return;
    if (fresh || number > (announced.next ?? 0)) this.#clear(announced);
    if (!fresh && number !== announced.next) {
      announced.next = null;
      return;
    }
    announced.next = number + 1;
    for (const [sign, group, hashes] of changes) {
      if (group >= this.#layout.groups.length) continue;
      for (const hash of hashes) this.#change(announced, sign, group, hash);
    }
    this.#bound();
  }

  /** Whether something that the worker announced was missed, by the number of what it announces next. */
  isBehind(worker: string, session: string, nextBlocks: number): boolean {
    const announced = this.#workers.get(worker);
    if (announced?.session !== session) return false;
    if (announced.next !== null && announced.next < nextBlocks) {
      this.#clear(announced);
      announced.next = null;
    }
    return announced.next === null;
  }

  /** Hashes of a worker's blocks of a group, for those who look. */
  blocksOf(worker: string, group: number): string[] {
    const blocks = this.#workers.get(worker)?.blocks ?? new Map<string, number>();
    return [...blocks].filter(([, bits]) => (bits & (1 << group)) !== 0).map(([hash]) => hash);
  }

  /**
   * @param blocks hashes of the prompt's whole blocks, in order
   * @param numTokens of the prompt
   */
  reuse(worker: string, blocks: readonly string[], numTokens: number): PrefixReuse {
    const announced = this.#workers.get(worker)?.blocks;
    const { tokensPerBlock, groups } = this.#layout;
    const required = groups
      .map(({ lifecycle }, group) => ({ lifecycle, group }))
      .filter(({ lifecycle }) => limitsMatch(lifecycle.policy));
    if (announced === undefined || announced.size === 0 || required.length === 0)
      return { endpoint: 0, held: required.map(() => 0) };
    const bits = blocks.map((hash) => announced.get(hash) ?? 0);
    const rows = required.map(({ lifecycle, group }) => ({ lifecycle, runs: runsOf(bits, group) }));
    let endpoint = 0;
    for (let end = blocks.length; end > 0 && endpoint === 0; end--)
      if (rows.every(({ lifecycle, runs }) => canGoOn(lifecycle, runs, end, tokensPerBlock))) endpoint = end * tokensPerBlock;
    return { endpoint, held: rows.map(({ lifecycle, runs }) => heldOf(lifecycle, runs, numTokens, tokensPerBlock)) };
  }

  #change({ blocks }: Announced, sign: '+' | '-', group: number, hash: string): void {
    const before = blocks.get(hash);
    const after = sign === '+' ? (before ?? 0) | (1 << group) : (before ?? 0) & ~(1 << group);
    if (after === before) return;
    if (before !== undefined) {
      blocks.delete(hash);
      this.#numBlocks--;
    }
    if (after === 0) return;
    blocks.set(hash, after);
    this.#numBlocks++;
  }

  #clear(announced: Announced): void {
    this.#numBlocks -= announced.blocks.size;
    announced.blocks = new Map();
  }

  #bound(): void {
    while (this.#numBlocks > this.#mostBlocks) {
      const [largest] = [...this.#workers.values()].sort((a, b) => b.blocks.size - a.blocks.size);
      let over = Math.max(1, Math.min(this.#numBlocks - this.#mostBlocks, largest.blocks.size >> 3));
      for (const hash of largest.blocks.keys()) {
        if (over-- === 0) break;
        largest.blocks.delete(hash);
        this.#numBlocks--;
      }
    }
  }
}

type Lifecycle = TransferLayout['groups'][number]['lifecycle'];

/** By block: how many blocks up to it, itself included, are there without a gap. */
function runsOf(bits: readonly number[], group: number): number[] {
  let run = 0;
  return bits.map((groups) => {
    run = (groups & (1 << group)) === 0 ? 0 : run + 1;
    return run;
  });
}

function isThere(runs: readonly number[], begin: number, end: number): boolean {
  return begin >= end || runs[end - 1] >= end - begin;
}

function canGoOn(lifecycle: Lifecycle, runs: readonly number[], end: number, tokensPerBlock: number): boolean {
  const needs = matchNeeds(lifecycle, end * tokensPerBlock, tokensPerBlock);
  if (needs.kind === 'snapshot') return runs[needs.blockOrdinal] > 0;
  return isThere(runs, needs.sinks.begin, needs.sinks.end) && isThere(runs, needs.window.begin, needs.window.end);
}

function heldOf(lifecycle: Lifecycle, runs: readonly number[], numTokens: number, tokensPerBlock: number): number {
  const needs = matchNeeds(lifecycle, numTokens, tokensPerBlock);
  // A state is right at exactly one length, and announced at whole blocks only.
  if (needs.kind === 'snapshot') return numTokens % tokensPerBlock === 0 && (runs[needs.blockOrdinal] ?? 0) > 0 ? numTokens : 0;
  let needed = 0;
  let there = 0;
  for (const { begin, end } of [needs.sinks, needs.window])
    for (let block = begin; block < end; block++) {
      needed++;
      if ((runs[block] ?? 0) > 0) there++;
    }
  return needed === 0 ? 0 : Math.floor((numTokens * there) / needed);
}
