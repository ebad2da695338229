import type { PageEntry } from '@bufferwise/adapter-kit';

/** Entries in the order that they came in, in pieces of so many bytes of pages at most, unless one page has more. */
export function entryPieces(entries: readonly PageEntry[], maxBytes: number): PageEntry[][] {
  const pieces: PageEntry[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const entry of entries) {
    if (bytes + entry.bytes.length > maxBytes) {
      pieces.push([]);
      bytes = 0;
    }
    pieces.at(-1)?.push(entry);
    bytes += entry.bytes.length;
  }
  return pieces;
}
