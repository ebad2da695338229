import { NONE } from '../columns.ts';
import { type PageId, pageAt, rowOf } from '../page/page-table.ts';
import { InvariantError } from '../testing/invariant-error.ts';
import type { EvictionPolicy } from './eviction-policy.ts';

/**
 * A policy of the caller, whose word is not taken for which pages are in the queue: what it says of them is compared with what it
 * was told. Room is made in the middle of changes that cannot be taken back, so where it fails, another page of the queue goes in
 * place of the one that it should have named, and whoever wants room next is told. The policy knows pages by their rows.
 */
export class GuardedPolicy implements EvictionPolicy {
  readonly #policy: EvictionPolicy;
  /** The pages in the queue, in the order in which they came. */
  readonly #queued = new Set<PageId>();
  /** What the policy did wrong, and what it threw; it is not asked any more then. */
  #fault: { text: string; cause?: unknown } | null = null;

  constructor(policy: EvictionPolicy) {
    this.#policy = policy;
  }

  get count(): number {
    return this.#queued.size;
  }

  push(page: PageId): void {
    this.#queued.add(page);
    this.#ask((policy) => policy.push(rowOf(page)));
  }

  remove(page: PageId): void {
    this.#queued.delete(page);
    this.#ask((policy) => policy.remove(rowOf(page)));
  }

  first(): PageId {
    if (this.#queued.size === 0) return NONE;
    const row = this.#ask((policy) => policy.first());
    if (row !== undefined && this.#queued.has(pageAt(row))) return pageAt(row);
    const said = row === NONE ? 'no page' : `${String(row)}, which is not in its queue,`;
    this.#fault ??= { text: `names ${said} though ${this.#queued.size} may go` };
    const [first] = this.#queued;
    return first;
  }

  reused(page: PageId): void {
    this.#ask((policy) => policy.reused?.(rowOf(page)));
  }

  wanted(groupId: number, contentHash: number): boolean {
    return this.#ask((policy) => policy.wanted?.(groupId, contentHash)) ?? false;
  }

  becameLeaf(page: PageId): void {
    this.#ask((policy) => policy.becameLeaf?.(rowOf(page)));
  }

  /** What the policy says of the order, as far as it is true, then all others. For checks and tools. */
  *[Symbol.iterator](): Generator<PageId> {
    const left = new Set(this.#queued);
    for (const row of this.#ask((policy) => [...policy]) ?? []) if (left.delete(pageAt(row))) yield pageAt(row);
    yield* left;
  }

  /** @throws {InvariantError} when the policy has failed, or does now */
  check(): void {
    this.first();
    const count = this.#ask((policy) => policy.count);
    if (count !== this.#queued.size) this.#fault ??= { text: `counts ${String(count)} of ${this.#queued.size} pages` };
    if (this.#fault === null) return;
    const error = new InvariantError([`an eviction policy of the caller ${this.#fault.text}`]);
    error.cause = this.#fault.cause;
    throw error;
  }

  #ask<T>(call: (policy: EvictionPolicy) => T): T | undefined {
    if (this.#fault !== null) return undefined;
    try {
      return call(this.#policy);
    } catch (error) {
      this.#fault = { text: `throws ${String(error)}`, cause: error };
      return undefined;
    }
  }
}
