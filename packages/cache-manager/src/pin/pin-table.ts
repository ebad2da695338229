import { StateError } from '@bufferwise/core-policy';
import { NONE } from '../columns.ts';
import { Expiries } from '../eviction/expiries.ts';
import type { PageId } from '../page/page-table.ts';
import type { GroupRules } from '../request/group-rules.ts';
import type { StorageManager } from '../storage/storage-manager.ts';

/** Part of every pool that may be pinned, unless the caller says otherwise. */
const DEFAULT_SHARE = 0.5;

/**
 * The pins of a manager: every pin holds its pages once, wherever they are, and together they hold no more than their share of
 * each pool of the device.
 */
export class PinTable {
  readonly #storage: StorageManager;
  readonly #groups: readonly GroupRules[];
  readonly #now: () => number;
  readonly #share: number;
  /** How many pins hold each page. */
  readonly #pins = new Map<PageId, number>();
  readonly #pages = new Map<number, readonly PageId[]>();
  readonly #ends = new Map<number, number>();
  readonly #expiries = new Expiries((pin, time) => this.#ends.get(pin) === time);
  #next = 0;

  /** @throws {StateError} `invalid-pinned-share` unless the share is from 0 to 1 */
  constructor(options: { storage: StorageManager; groups: readonly GroupRules[]; share?: number; now: () => number }) {
    const { storage, groups, share = DEFAULT_SHARE, now } = options;
    if (!(share >= 0 && share <= 1)) {
      throw new StateError('invalid-pinned-share', `maxPinnedShare is ${share}; it must be a part of a pool, from 0 to 1`);
    }
    this.#storage = storage;
    this.#groups = groups;
    this.#now = now;
    this.#share = share;
  }

  /** Pins that were not released. */
  get size(): number {
    return this.#pages.size;
  }

  /** How many pins hold a page. */
  holdsOf(page: PageId): number {
    return this.#pins.get(page) ?? 0;
  }

  /** Holds pages, none of them twice, until they are released or the time is over. -1, and nothing has changed, when that is more than the share. */
  add(pages: readonly PageId[], durationMs: number | undefined): number {
    const { poolGroups } = this.#storage;
    const counts = poolGroups.map(() => 0);
    for (const page of this.#pins.keys()) counts[this.#poolGroupOf(page)]++;
    for (const page of pages) if (!this.#pins.has(page)) counts[this.#poolGroupOf(page)]++;
    if (counts.some((count, poolGroup) => count > Math.floor(poolGroups[poolGroup].numSlots * this.#share))) return -1;
    for (const page of pages) {
      this.#storage.claim(page);
      this.#pins.set(page, this.holdsOf(page) + 1);
    }
    const pin = this.#next++;
    this.#pages.set(pin, pages);
    if (durationMs !== undefined) {
      const end = this.#now() + durationMs;
      this.#ends.set(pin, end);
      this.#expiries.add(pin, end);
    }
    return pin;
  }

  has(pin: number): boolean {
    return this.#pages.has(pin);
  }

  /** Lets go of the pages, the last first. Does nothing the second time. */
  release(pin: number): void {
    const pages = this.#pages.get(pin) ?? [];
    this.#pages.delete(pin);
    this.#ends.delete(pin);
    for (let i = pages.length - 1; i >= 0; i--) {
      const page = pages[i];
      const left = this.holdsOf(page) - 1;
      if (left === 0) this.#pins.delete(page);
      else this.#pins.set(page, left);
      this.#storage.unclaim(page);
    }
  }

  /** Lets go of pages whose bytes are gone. The pins stay, with what is left of them. */
  forget(lost: ReadonlySet<PageId>): void {
    for (const [pin, pages] of this.#pages) {
      if (!pages.some((page) => lost.has(page))) continue;
      this.#pages.set(
        pin,
        pages.filter((page) => !lost.has(page)),
      );
    }
    for (const page of lost) {
      for (let count = this.holdsOf(page); count > 0; count--) this.#storage.unclaim(page);
      this.#pins.delete(page);
    }
  }

  /** Lets go of pages that the tree lists no more: no match finds them again. */
  forgetUnlisted(): void {
    const { block } = this.#storage.pages;
    const unlisted = [...this.#pins.keys()].filter((page) => block[page] === NONE);
    if (unlisted.length > 0) this.forget(new Set(unlisted));
  }

  /** Holds, in place of a page, one that takes its place in the tree: what was pinned is the prefix. */
  replace(page: PageId, by: PageId): void {
    const count = this.holdsOf(page);
    if (count === 0) return;
    for (const [pin, pages] of this.#pages) {
      if (pages.includes(page))
        this.#pages.set(
          pin,
          pages.map((each) => (each === page ? by : each)),
        );
    }
    for (let i = 0; i < count; i++) this.#storage.claim(by);
    this.#pins.set(by, count);
    for (let i = 0; i < count; i++) this.#storage.unclaim(page);
    this.#pins.delete(page);
  }

  releaseAll(): void {
    for (const pin of [...this.#pages.keys()]) this.release(pin);
  }

  /** Releases the pins whose time is over. */
  expire(): void {
    if (this.#expiries.size === 0) return;
    const now = this.#now();
    for (let pin = this.#expiries.take(now); pin !== -1; pin = this.#expiries.take(now)) this.release(pin);
  }

  #poolGroupOf(page: PageId): number {
    return this.#groups[this.#storage.pages.lifecycle[page]].poolGroup;
  }
}
