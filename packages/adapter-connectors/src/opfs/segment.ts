import { SEAL_BYTES } from '@bufferwise/adapter-kit';
import { isPageKey } from '../is-page-key.ts';
import type { IndexedPage } from '../page-index.ts';
import type { OpfsHandle } from './opfs-files.ts';
import { decodeHead, encodeHead, HEAD_BYTES, LOOK_BYTES, STATE_AT, USED_AT } from './record.ts';

/** A page and where it lies, which changes when it is moved. */
export interface StoredPage extends IndexedPage {
  segment: Segment;
  /** Where its record begins. */
  offset: number;
  /** The time of its last use that stands on the medium. */
  notedAt: number;
}

/**
 * A file that records are appended to, with the pages of it that count. What is written outlives the worker; `flush` forces it to the disk.
 */
export class Segment {
  readonly name: string;
  /** What of it is not forgotten, by key. */
  readonly pages = new Map<string, StoredPage>();
  readonly #handle: OpfsHandle;
  #bytes: number;
  #liveBytes = 0;

  constructor(name: string, handle: OpfsHandle) {
    this.name = name;
    this.#handle = handle;
    this.#bytes = handle.getSize();
  }

  /** Of the file. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Of records whose pages count. */
  get liveBytes(): number {
    return this.#liveBytes;
  }

  /**
   * Records up to the first thing that is none: what lies behind that cannot be found, and is cut off, as the tail of a write that was never
   * finished is. Looks at heads only. Of two records of one key the later one is told.
   *
   * @param maxPageBytes no record has more
   */
  scan(maxPageBytes: number): Map<string, StoredPage> {
    const found = new Map<string, StoredPage>();
    const look = new Uint8Array(LOOK_BYTES);
    let offset = 0;
    while (offset < this.#bytes) {
      const head = decodeHead(look.subarray(0, this.#handle.read(look, { at: offset })));
      if (head === null || head.sealedBytes < SEAL_BYTES || head.sealedBytes > maxPageBytes + SEAL_BYTES || !isPageKey(head))
        break;
      const bytes = HEAD_BYTES + head.key.length + head.sealedBytes;
      if (offset + bytes > this.#bytes) break;
      if (head.isLive) found.set(head.key, { segment: this, offset, bytes, usedAt: head.usedAt, notedAt: head.usedAt });
      offset += bytes;
    }
    if (offset < this.#bytes) this.#cut(offset);
    return found;
  }

  /**
   * Writes a record behind the last one. Throws what the browser says, with the file as long as it was.
   *
   * @returns where it begins
   */
  append(key: string, sealed: Uint8Array, usedAt: number): number {
    const offset = this.#bytes;
    const head = encodeHead(key, sealed.length, usedAt);
    try {
      this.#write(head, offset);
      this.#write(sealed, offset + head.length);
    } catch (error) {
      this.#cut(offset);
      throw error;
    }
    this.#bytes = offset + head.length + sealed.length;
    return offset;
  }

  /** The bytes of a record, as many as there are; the caller owns them. */
  read({ offset, bytes }: StoredPage): Uint8Array {
    const record = new Uint8Array(bytes);
    return record.subarray(0, this.#handle.read(record, { at: offset }));
  }

  /** Counts the page of a record from now on. */
  keep(key: string, page: StoredPage): void {
    this.pages.set(key, page);
    this.#liveBytes += page.bytes;
  }

  /** Counts a page no longer. */
  drop(key: string, page: StoredPage): void {
    if (this.pages.delete(key)) this.#liveBytes -= page.bytes;
  }

  /** Says on the medium that a record is to be skipped. */
  markRemoved(offset: number): void {
    this.#write(new Uint8Array(USED_AT - STATE_AT), offset + STATE_AT);
  }

  /** Says on the medium when the page was used last. */
  note(page: StoredPage): void {
    const time = new Uint8Array(8);
    new DataView(time.buffer).setFloat64(0, page.usedAt, true);
    this.#write(time, page.offset + USED_AT);
    page.notedAt = page.usedAt;
  }

  flush(): void {
    this.#handle.flush();
  }

  close(): void {
    this.#handle.close();
  }

  #write(bytes: Uint8Array, at: number): void {
    const written = this.#handle.write(bytes, { at });
    if (written !== bytes.length)
      throw new DOMException(`${written} of ${bytes.length} bytes were written to ${this.name}`, 'QuotaExceededError');
  }

  #cut(bytes: number): void {
    this.#handle.truncate(bytes);
    this.#bytes = bytes;
  }
}
