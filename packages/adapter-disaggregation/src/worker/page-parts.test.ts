import { describe, expect, test } from 'vitest';
import { PageAssembly, PageParts } from './page-parts.ts';

const pageOf = (block: number, bytes: number) => Uint8Array.from({ length: bytes }, (_, i) => block * 40 + i);

/** Sends pages and puts them together again. */
function moved(parts: PageParts, firstBlock: number, numPages: number, isWanted = (_block: number) => true) {
  const pages = Array.from({ length: numPages }, (_, i) => pageOf(firstBlock + i, parts.pageBytes));
  const assembly = new PageAssembly(parts, isWanted);
  return [...parts.split(firstBlock, pages)].flatMap(({ firstPage, bytes }) => assembly.take(firstPage, bytes) ?? []);
}

describe('pages come together as they were sent', () => {
  test.each<[string, number, number, number]>([
    ['one at a time', 10, 19, 1],
    ['several at a time', 10, 30, 3],
    ['in parts', 30, 7, 2],
    ['in parts that fill them', 30, 10, 2],
  ])('%s', (_, pageBytes, partBytes, numPages) => {
    const parts = new PageParts(pageBytes, partBytes);
    const expected = Array.from({ length: numPages }, (_, i) => ({ block: 5 + i, bytes: pageOf(5 + i, pageBytes) }));
    expect(moved(parts, 5, numPages)).toEqual(expected);
  });
});

test('parts of a page that nobody waits for take no memory, and a page with a part missing never comes', () => {
  const parts = new PageParts(30, 10);
  expect(moved(parts, 0, 2, (block) => block === 1)).toEqual([{ block: 1, bytes: pageOf(1, 30) }]);
  const assembly = new PageAssembly(parts, () => true);
  const [first, , last] = parts.split(0, [pageOf(0, 30)]);
  expect([first, last, first].map(({ firstPage, bytes }) => assembly.take(firstPage, bytes))).toEqual([[], [], []]);
});

test.each([
  ['half a page', new PageParts(10, 10), 0, 5],
  ['nothing', new PageParts(10, 10), 0, 0],
  ['a part too long', new PageParts(30, 7), 0, 8],
  ['a last part as long as the others', new PageParts(30, 7), 4, 7],
])('%s is no page', (_, parts, firstPage, length) => {
  expect(new PageAssembly(parts, () => true).take(firstPage, new Uint8Array(length))).toBeNull();
});
