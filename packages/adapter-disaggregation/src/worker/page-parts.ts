/**
 * How pages of a size are sent: several at a time where they are small, in parts where one is more than can be sent at once. What is sent is
 * numbered by the part: the block times the parts of a page, plus the part's place in it.
 */
export class PageParts {
  readonly pageBytes: number;
  readonly partBytes: number;
  /** Parts of one page. */
  readonly numParts: number;
  /** Pages that go together at most. */
  readonly pagesAtATime: number;

  constructor(pageBytes: number, partBytes: number) {
    this.pageBytes = pageBytes;
    this.partBytes = partBytes;
    this.numParts = Math.max(1, Math.ceil(pageBytes / partBytes));
    this.pagesAtATime = Math.max(1, Math.floor(partBytes / Math.max(1, pageBytes)));
  }

  /** What is sent of pages of blocks that follow each other. */
  *split(firstBlock: number, pages: readonly Uint8Array[]): Iterable<{ firstPage: number; bytes: Uint8Array }> {
    if (this.numParts === 1) {
      const bytes = pages.length === 1 ? pages[0] : new Uint8Array(pages.length * this.pageBytes);
      if (pages.length > 1) for (const [i, page] of pages.entries()) bytes.set(page, i * this.pageBytes);
      yield { firstPage: firstBlock, bytes };
      return;
    }
    for (const [i, page] of pages.entries())
      for (let part = 0; part < this.numParts; part++)
        yield {
          firstPage: (firstBlock + i) * this.numParts + part,
          bytes: page.subarray(part * this.partBytes, (part + 1) * this.partBytes),
        };
  }
}

/** Puts pages together again of what comes of one group. Of a page that comes in parts there is one at a time. */
export class PageAssembly {
  readonly #parts: PageParts;
  readonly #isWanted: (block: number) => boolean;
  #block = -1;
  #page: Uint8Array = new Uint8Array(0);
  readonly #came = new Set<number>();

  /** @param isWanted whether a page is awaited: no memory is taken for others */
  constructor(parts: PageParts, isWanted: (block: number) => boolean) {
    this.#parts = parts;
    this.#isWanted = isWanted;
  }

  /** Takes what came. @returns whole pages; null when it has no length that pages or parts have */
  take(firstPage: number, bytes: Uint8Array): readonly { block: number; bytes: Uint8Array }[] | null {
    const { pageBytes, partBytes, numParts } = this.#parts;
    if (numParts === 1) {
      if (bytes.length === 0 || bytes.length % pageBytes !== 0) return null;
      return Array.from({ length: bytes.length / pageBytes }, (_, i) => ({
        block: firstPage + i,
        bytes: bytes.subarray(i * pageBytes, (i + 1) * pageBytes),
      }));
    }
    const part = firstPage % numParts;
    const block = (firstPage - part) / numParts;
    if (bytes.length !== Math.min(partBytes, pageBytes - part * partBytes)) return null;
    if (!this.#isWanted(block)) return [];
    if (this.#block !== block) {
      this.#block = block;
      this.#page = new Uint8Array(pageBytes);
      this.#came.clear();
    }
    this.#page.set(bytes, part * partBytes);
    this.#came.add(part);
    if (this.#came.size < numParts) return [];
    this.#block = -1;
    return [{ block, bytes: this.#page }];
  }
}
