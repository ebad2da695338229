import { type PageEntry, type PutOutcome, SEAL_BYTES, sealPage } from '@bufferwise/adapter-kit';
import { isNoRoom } from '../no-room.ts';
import { FLOAT_STEP_MS, PageIndex, UseTimes } from '../page-index.ts';
import { pageOfRecord, recordBytes, sealedOfRecord } from './record.ts';
import type { Segment, StoredPage } from './segment.ts';
import type { SegmentFolder } from './segment-folder.ts';

/** A segment is this part of the quota at most, and so is the room that is kept free for moving pages. */
const SEGMENTS = 32;
const MAX_SEGMENT_BYTES = 256 << 20;
/** Pages take up this part of the quota at most; the rest is for what was removed and still lies there. */
const LIVE_SHARE = 0.8;
/** After so many milliseconds without a note on the disk, the next use of a page is noted there. */
const NOTE_EVERY_MS = 60_000;

/**
 * How sure a page is on the disk when it counts as stored. `never`: the system writes when it likes, which loses nothing when a page is closed or the
 * browser ends, and what a power cut has torn is found damaged later; `always`: it is forced there.
 */
export type Flush = 'never' | 'always';

export interface SegmentedPagesOptions {
  readonly quotaBytes: number;
  /** No page has more. */
  readonly maxPageBytes: number;
  readonly flush: Flush;
}

/** What one call of `put` has written and not published yet, and the keys of what got lost on the way. */
interface Batch {
  written: { readonly key: string; readonly page: StoredPage }[];
  readonly lost: Set<string>;
}

/**
 * Pages in segments: files that are only ever appended to, and removed as a whole.
 *
 * A page is in the index once its record is written, and flushed where that is asked for; the index is made anew from the records when the folder is opened. Who goes is
 * decided page by page, the least recently used first, so that pages never take up more than four fifths of the quota; their records
 * are marked, which costs no room. When the files come near the quota, the segment with the least that counts goes: what counts
 * is appended elsewhere before that. One part of 32 of the quota is kept free for it, so that the quota holds meanwhile, too.
 *
 * `put` and `close` are for one caller at a time; all else is synchronous, and goes between them.
 */
export class SegmentedPages {
  readonly maxPageBytes: number;
  readonly #folder: SegmentFolder;
  readonly #index: PageIndex<StoredPage>;
  readonly #times = new UseTimes(Date.now, FLOAT_STEP_MS);
  readonly #flush: Flush;
  readonly #segments = new Set<Segment>();
  /** Takes the next record. */
  #active: Segment | undefined;
  #quotaBytes: number;
  #mayShrink = true;

  private constructor(folder: SegmentFolder, { quotaBytes, maxPageBytes, flush }: SegmentedPagesOptions) {
    this.#folder = folder;
    this.#quotaBytes = quotaBytes;
    this.#flush = flush;
    this.maxPageBytes = maxPageBytes;
    this.#index = new PageIndex(Math.floor(quotaBytes * LIVE_SHARE));
  }

  /** Finds what lies in the folder, and lets go of what is beyond the quota. Rejects with what the browser says, with nothing left open. */
  static async open(folder: SegmentFolder, options: SegmentedPagesOptions): Promise<SegmentedPages> {
    const pages = new SegmentedPages(folder, options);
    try {
      await pages.#takeStock();
      return pages;
    } catch (error) {
      pages.#closeSegments();
      throw error;
    }
  }

  /** Bytes that the files have now. */
  get usedBytes(): number {
    let bytes = 0;
    for (const segment of this.#segments) bytes += segment.bytes;
    return bytes;
  }

  /** Bytes that the files may have: what was asked for, or what the browser has turned out to give. */
  get quotaBytes(): number {
    return this.#quotaBytes;
  }

  get index(): Pick<PageIndex, 'piece'> {
    return this.#index;
  }

  has(key: string): boolean {
    return this.#index.get(key) !== undefined;
  }

  /** The page, which belongs to the caller; what is damaged is forgotten. */
  get(key: string): Uint8Array | 'missing' | 'damaged' {
    const stored = this.#index.get(key);
    if (stored === undefined) return 'missing';
    const page = pageOfRecord(key, stored.segment.read(stored));
    if (page === null) {
      this.#forgetDamaged(key, stored);
      return 'damaged';
    }
    this.#index.touch(key, stored, this.#times.next());
    if (stored.usedAt - stored.notedAt >= NOTE_EVERY_MS) noteUse(stored);
    return page;
  }

  /** @returns whether it was there */
  delete(key: string): boolean {
    const stored = this.#index.get(key);
    if (stored === undefined) return false;
    stored.segment.markRemoved(stored.offset);
    this.#forget(key, stored);
    return true;
  }

  /** Stores pages, with one flush of a segment for all of them. Rejects with what the browser says, unless that is a lack of room. */
  async put(entries: readonly PageEntry[]): Promise<PutOutcome[]> {
    const batch: Batch = { written: [], lost: new Set() };
    const outcomes: PutOutcome[] = [];
    try {
      for (const entry of entries) outcomes.push(await this.#append(entry, batch));
    } finally {
      this.#publish(batch);
    }
    return outcomes.map((outcome, i) => (batch.lost.has(entries[i].key) ? FULL : outcome));
  }

  /** Notes what was used last, and lets go of the files. */
  close(): void {
    for (const stored of this.#index.pages.values()) if (stored.usedAt !== stored.notedAt) noteUse(stored);
    this.#closeSegments();
  }

  get #segmentBytes(): number {
    return Math.min(Math.floor(this.#quotaBytes / SEGMENTS), MAX_SEGMENT_BYTES);
  }

  async #takeStock(): Promise<void> {
    const found = new Map<string, StoredPage>();
    for (const segment of await this.#folder.openAll()) {
      this.#segments.add(segment);
      // Segments come from the oldest on: of two records of one key, which an interrupted move leaves, the later one counts.
      for (const [key, stored] of segment.scan(this.maxPageBytes)) {
        const earlier = found.get(key);
        if (earlier !== undefined) markRemoved(earlier);
        found.set(key, stored);
      }
    }
    for (const [key, stored] of [...found].sort(([, a], [, b]) => a.usedAt - b.usedAt)) {
      this.#times.seen(stored.usedAt);
      this.#index.add(key, stored);
      stored.segment.keep(key, stored);
    }
    this.#reserve(0);
    for (const segment of this.#segments) if (segment.liveBytes === 0) await this.#remove(segment);
    await this.#makeRoom(0);
  }

  async #append(entry: PageEntry, batch: Batch): Promise<PutOutcome> {
    const { key, bytes } = entry;
    if (this.has(key)) return { status: 'exists' };
    const size = recordBytes(key, bytes.length);
    if (bytes.length > this.maxPageBytes || size > this.#index.quotaBytes) return TOO_LARGE;
    const sealed = sealPage(key, bytes);
    for (;;) {
      if (!this.#reserve(size)) {
        // What this call has written stands in the way, and can only go once it counts.
        this.#publish(batch);
        if (!this.#reserve(size)) return FULL;
      }
      try {
        await this.#makeRoom(size);
        batch.written.push({ key, page: await this.#write(key, sealed, this.#times.next()) });
        this.#mayShrink = true;
        return { status: 'stored' };
      } catch (error) {
        this.#index.release(size);
        if (!isNoRoom(error)) throw error;
        this.#publish(batch);
        if (!this.#shrink() || size > this.#index.quotaBytes) return FULL;
      }
    }
  }

  /** Writes a record, and has its page count in its segment, though not in the index. */
  async #write(key: string, sealed: Uint8Array, usedAt: number): Promise<StoredPage> {
    const bytes = recordBytes(key, sealed.length - SEAL_BYTES);
    const segment = await this.#segmentFor(bytes);
    const page = { segment, offset: segment.append(key, sealed, usedAt), bytes, usedAt, notedAt: usedAt };
    segment.keep(key, page);
    return page;
  }

  /** Takes what was written into the index. */
  #publish(batch: Batch): void {
    const flushed = new Map<Segment, boolean>();
    for (const { page } of batch.written) if (!flushed.has(page.segment)) flushed.set(page.segment, this.#flushed(page.segment));
    for (const { key, page } of batch.written) {
      this.#index.release(page.bytes);
      // Unless there was no room for it when its segment went.
      if (page.segment.pages.get(key) === page && flushed.get(page.segment) === true) {
        this.#index.add(key, page);
        continue;
      }
      batch.lost.add(key);
      markRemoved(page);
      page.segment.drop(key, page);
    }
    batch.written = [];
  }

  /** Reserves room in the index, and forgets what is in the way. */
  #reserve(bytes: number): boolean {
    const evicted = this.#index.reserve(bytes);
    if (evicted === null) return false;
    for (const [key, stored] of evicted) {
      stored.segment.drop(key, stored);
      markRemoved(stored);
    }
    return true;
  }

  /** Removes segments until so many bytes can be written with room left to move pages. Removes none where that gives nothing. */
  async #makeRoom(bytes: number): Promise<void> {
    while (this.usedBytes + bytes > this.#quotaBytes - this.#segmentBytes) {
      const victim = this.#emptiest();
      if (victim === undefined) return;
      await this.#reclaim(victim);
    }
  }

  #emptiest(): Segment | undefined {
    let emptiest: Segment | undefined;
    let share = 1;
    for (const segment of this.#segments) {
      const live = segment.bytes === 0 ? 0 : segment.liveBytes / segment.bytes;
      if (live >= share) continue;
      emptiest = segment;
      share = live;
    }
    return emptiest;
  }

  /** Removes a segment; its pages are moved as far as there is room. */
  async #reclaim(segment: Segment): Promise<void> {
    if (segment === this.#active) this.#active = undefined;
    const copies: [string, StoredPage, StoredPage][] = [];
    for (const [key, stored] of [...segment.pages]) {
      const copy = await this.#copyOf(key, stored);
      if (copy === null) this.#forget(key, stored);
      else copies.push([key, stored, copy]);
    }
    for (const target of new Set(copies.map(([, , copy]) => copy.segment))) this.#flushed(target);
    for (const [key, stored, copy] of copies) {
      copy.segment.drop(key, copy);
      // Found to be damaged meanwhile.
      if (segment.pages.get(key) !== stored) {
        markRemoved(copy);
        continue;
      }
      segment.drop(key, stored);
      stored.segment = copy.segment;
      stored.offset = copy.offset;
      stored.notedAt = copy.notedAt;
      stored.segment.keep(key, stored);
    }
    await this.#remove(segment);
  }

  /** A second record of a page; null where it is damaged, or there is no room. */
  async #copyOf(key: string, stored: StoredPage): Promise<StoredPage | null> {
    const record = stored.segment.read(stored);
    if (pageOfRecord(key, record) === null || this.usedBytes + stored.bytes > this.#quotaBytes) return null;
    try {
      return await this.#write(key, sealedOfRecord(key, record), stored.usedAt);
    } catch (error) {
      if (isNoRoom(error)) return null;
      throw error;
    }
  }

  /** The segment for a record of so many bytes: the active one, or a new one when it would grow too large. */
  async #segmentFor(bytes: number): Promise<Segment> {
    if (this.#active !== undefined && this.#active.bytes + bytes <= this.#segmentBytes) return this.#active;
    const segment = await this.#folder.create();
    this.#segments.add(segment);
    this.#active = segment;
    return segment;
  }

  async #remove(segment: Segment): Promise<void> {
    segment.close();
    this.#segments.delete(segment);
    await this.#folder.remove(segment);
  }

  /**
   * The browser has less room than the quota says: what there is becomes the quota, so that old pages make room for new ones.
   *
   * @returns false when that was done, and was no use
   */
  #shrink(): boolean {
    if (!this.#mayShrink) return false;
    this.#mayShrink = false;
    this.#quotaBytes = Math.min(this.#quotaBytes, this.usedBytes);
    this.#index.quotaBytes = Math.floor(this.#quotaBytes * LIVE_SHARE);
    return true;
  }

  /** Nothing more is written into a segment in which something is not as it was written. */
  #forgetDamaged(key: string, stored: StoredPage): void {
    if (stored.segment === this.#active) this.#active = undefined;
    markRemoved(stored);
    this.#forget(key, stored);
  }

  #forget(key: string, stored: StoredPage): void {
    stored.segment.drop(key, stored);
    this.#index.remove(key, stored);
  }

  /** @returns false when there was no room after all */
  #flushed(segment: Segment): boolean {
    if (this.#flush === 'never') return true;
    try {
      segment.flush();
      return true;
    } catch (error) {
      if (isNoRoom(error)) return false;
      throw error;
    }
  }

  #closeSegments(): void {
    for (const segment of this.#segments) segment.close();
    this.#segments.clear();
  }
}

const FULL: PutOutcome = { status: 'refused', reason: 'full' };
const TOO_LARGE: PutOutcome = { status: 'refused', reason: 'too-large' };

/** What cannot be marked comes back when the folder is opened anew, whole, and goes again. */
function markRemoved({ segment, offset }: StoredPage): void {
  try {
    segment.markRemoved(offset);
  } catch {}
}

/** What cannot be noted only orders what goes first. */
function noteUse(stored: StoredPage): void {
  try {
    stored.segment.note(stored);
  } catch {}
}
