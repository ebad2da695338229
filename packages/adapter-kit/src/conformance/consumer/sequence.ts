import type { KvCache } from '@bufferwise/cache-manager';
import type { LayerGroupId } from '@bufferwise/core-policy';
import { mix } from '../../memory/mix.ts';
import { ensure } from '../assertions.ts';

/** Values that a consumer put out for one token. */
export type Row = readonly number[];

/** A prompt, or what follows it: whole numbers. */
export type Tokens = readonly number[];

/** One request of a test: what it has seen, and what came out. */
export class Sequence {
  readonly kv: KvCache;
  tokens: Tokens;
  readonly matched: number;
  readonly reusedGroups: ReadonlySet<LayerGroupId>;
  /** Where its next step begins. */
  next: number;
  /** What came out, by position; nothing for tokens that were matched. */
  readonly rows: Row[] = [];

  constructor(kv: KvCache, tokens: Tokens, from: number, reusedGroups: ReadonlySet<LayerGroupId>) {
    this.kv = kv;
    this.tokens = tokens;
    this.matched = kv.numCommittedTokens;
    this.next = from;
    this.reusedGroups = reusedGroups;
  }

  /** Takes in what was computed and not yet committed, up to `end`. */
  commit(end: number, options: { snapshot?: boolean } = {}): void {
    this.kv.commit(this.tokens.slice(this.kv.numCommittedTokens, end), options);
  }
}

/** A word for each token that stands for all up to it. */
export function seedsOf(tokens: Tokens): Uint32Array {
  const seeds = new Uint32Array(tokens.length);
  tokens.forEach((token, i) => {
    seeds[i] = mix(i === 0 ? 1 : seeds[i - 1], token);
  });
  return seeds;
}

/** Throws {BrokenPromiseError} unless the rows from `begin` on are the same. */
export function ensureSameRows(
  found: readonly Row[],
  expected: readonly Row[],
  begin: number,
  tolerance: number,
  what: string,
): void {
  ensure(found.length === expected.length, `${what}: ${found.length} tokens came out, expected ${expected.length}`);
  for (let position = begin; position < expected.length; position++) {
    const [row, wanted] = [found[position], expected[position]];
    ensure(
      row !== undefined && row.length === wanted.length && row.length > 0,
      `${what}: nothing came out for token ${position}`,
    );
    for (const [i, value] of row.entries()) {
      const room = tolerance * Math.max(1, Math.abs(value), Math.abs(wanted[i]));
      ensure(Math.abs(value - wanted[i]) <= room, `${what}: value ${i} of token ${position} is ${value}, expected ${wanted[i]}`);
    }
  }
}
