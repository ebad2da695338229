import type { PageWriteShape } from './page-write.ts';

/**
 * What the page-write kernel computes, in plain TypeScript.
 *
 * @param tokens    `[numTokens, 2]` of request and position
 * @param pageTable `[numRequests, tableStride]` of page indices, -1 where there is no page
 * @param pages     changed in place
 */
export function pageWriteReference(
  shape: PageWriteShape,
  rows: Float32Array,
  tokens: Int32Array,
  pageTable: Int32Array,
  pages: Float32Array,
): void {
  const { numTokens, tokensPerPage, tableStride, rowWords, pageStrideWords } = shape;
  const { rowStrideWords = rowWords, rowsBaseWords = 0, pagesBaseWords = 0 } = shape;
  for (let token = 0; token < numTokens; token++) {
    const request = tokens[token * 2];
    const position = tokens[token * 2 + 1];
    const column = Math.floor(position / tokensPerPage);
    if (request < 0 || position < 0 || column >= tableStride) continue;
    const page = pageTable[request * tableStride + column] ?? -1;
    if (page < 0) continue;
    const source = rowsBaseWords + token * rowStrideWords;
    const target = pagesBaseWords + page * pageStrideWords + (position % tokensPerPage) * rowWords;
    pages.set(rows.subarray(source, source + rowWords), target);
  }
}
