import { NUMBERS_PER_WORD } from '../kv-pages/kv-pages.ts';
import type { PageWriteShape } from './page-write.ts';

/**
 * What the page-write kernel computes, in plain TypeScript.
 *
 * @param rows      f32
 * @param tokens    `[numTokens, 2]` of request and position
 * @param pageTable `[numRequests, tableStride]` of page indices, -1 where there is no page
 * @param pages     stored numbers, changed in place: two for each word of the shape where the storage is f16
 * @param stored    a number as it is stored
 */
export function pageWriteReference(
  shape: PageWriteShape,
  rows: Float32Array,
  tokens: Int32Array,
  pageTable: Int32Array,
  pages: Float32Array,
  stored = (number: number) => number,
): void {
  const { numTokens, tokensPerPage, tableStride, rowWords, pageStrideWords, storage = 'f32' } = shape;
  const numbersPerWord = NUMBERS_PER_WORD[storage];
  const { rowStrideWords = rowWords, rowsBaseWords = 0, pagesBaseWords = 0 } = shape;
  const { pageRowStrideWords = rowWords / numbersPerWord } = shape;
  for (let token = 0; token < numTokens; token++) {
    const request = tokens[token * 2];
    const position = tokens[token * 2 + 1];
    const column = Math.floor(position / tokensPerPage);
    if (request < 0 || position < 0 || column >= tableStride) continue;
    const page = pageTable[request * tableStride + column] ?? -1;
    if (page < 0) continue;
    const source = rowsBaseWords + token * rowStrideWords;
    const target = pagesBaseWords + page * pageStrideWords + (position % tokensPerPage) * pageRowStrideWords;
    pages.set(rows.subarray(source, source + rowWords).map(stored), target * numbersPerWord);
  }
}
