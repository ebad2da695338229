import type { PageList } from '@bufferwise/adapter-kit';

/** What is known of a page on a medium without a look at it. */
export interface IndexedPage {
  /** On the medium, with all that a store adds. */
  readonly bytes: number;
  /** When it was stored or given out last, in milliseconds. */
  usedAt: number;
}

/**
 * What lies on a medium, in the order of its last use, with the room that it takes up: the rule of all stores with a quota of their own.
 * Room is reserved before a page is written, so that a medium never holds more than its quota.
 */
export class PageIndex<Page extends IndexedPage = IndexedPage> {
  /** May be lowered: the next reservation brings the index down to it. */
  quotaBytes: number;
  readonly #pages = new Map<string, Page>();
  #usedBytes = 0;

  /** @param quotaBytes above 0; infinite for none */
  constructor(quotaBytes: number) {
    this.quotaBytes = quotaBytes;
  }

  /** Bytes of pages and of reserved room. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** From the least recently used on. */
  get pages(): ReadonlyMap<string, Page> {
    return this.#pages;
  }

  get(key: string): Page | undefined {
    return this.#pages.get(key);
  }

  /** Adds a page whose room is counted from now on, as the one used last. */
  add(key: string, page: Page): void {
    this.#pages.set(key, page);
    this.#usedBytes += page.bytes;
  }

  /** Marks a page as the one used last. */
  touch(key: string, page: Page, usedAt: number): void {
    this.#pages.delete(key);
    this.#pages.set(key, page);
    page.usedAt = usedAt;
  }

  /** Forgets a page, unless another one has taken its place. */
  remove(key: string, page: Page): boolean {
    if (this.#pages.get(key) !== page) return false;
    this.#pages.delete(key);
    this.#usedBytes -= page.bytes;
    return true;
  }

  /**
   * Counts room for a page, and forgets the least recently used ones that are in the way: whoever asks removes them from the medium.
   *
   * @returns what was forgotten, or null, with nothing changed, when pages that are being written leave no such room
   */
  reserve(bytes: number): [string, Page][] | null {
    let room = this.quotaBytes - this.#usedBytes;
    const inTheWay: [string, Page][] = [];
    for (const each of this.#pages) {
      if (room >= bytes) break;
      inTheWay.push(each);
      room += each[1].bytes;
    }
    if (room < bytes) return null;
    for (const [key, page] of inTheWay) this.remove(key, page);
    this.#usedBytes += bytes;
    return inTheWay;
  }

  /** Takes back a reservation: nothing was written, or `add` counts it from now on. */
  release(bytes: number): void {
    this.#usedBytes -= bytes;
  }

  /** A piece of all keys, in the order of the alphabet: what a `list` answers. */
  piece(after: string | undefined, maxKeys: number): PageList {
    const rest = [...this.#pages.keys()].filter((key) => key > (after ?? '')).sort();
    const keys = rest.slice(0, maxKeys);
    return { keys: keys.map((key) => ({ key })), cursor: keys.length < rest.length ? (keys.at(-1) as string) : null };
  }
}

/** Times of use, of which each is later than the one before, also where the clock stands still or goes back. */
export class UseTimes {
  readonly #now: () => number;
  readonly #stepMs: number;
  #last = 0;

  /**
   * @param now milliseconds
   * @param stepMs the least that lies between two times: what the medium can tell apart
   */
  constructor(now: () => number, stepMs: number) {
    this.#now = now;
    this.#stepMs = stepMs;
  }

  next(): number {
    this.#last = Math.max(this.#now(), this.#last + this.#stepMs);
    return this.#last;
  }

  /** Takes a time into account that was found on the medium. */
  seen(usedAt: number): void {
    this.#last = Math.max(this.#last, usedAt);
  }
}

/** For media that keep times as float64: about four of its steps today. */
export const FLOAT_STEP_MS = 1 / 1024;
