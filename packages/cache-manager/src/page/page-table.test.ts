import { expect, test } from 'vitest';
import { NONE } from '../columns.ts';
import { PageTable } from './page-table.ts';

test('a new page has its lifecycle, slot and priority, and belongs to nobody', () => {
  const pages = new PageTable();
  const page = pages.create(3, 17, 99);
  expect([pages.lifecycle[page], pages.slot[page], pages.priority[page]]).toEqual([3, 17, 99]);
  expect([pages.block[page], pages.holds[page], pages.coverage[page]]).toEqual([NONE, 0, 0]);
  expect([pages.nextInBlock[page], pages.nextInQueue[page], pages.previousInQueue[page]]).toEqual([NONE, NONE, NONE]);
  expect(pages.isLive(page)).toBe(true);
});

test('an id is used again only when its page is gone, with nothing left of it', () => {
  const pages = new PageTable();
  const page = pages.create(1, 5, 1);
  pages.block[page] = 7;
  pages.coverage[page] = 4;
  pages.holds[page] = 2;
  expect(pages.create(1, 6, 1)).not.toBe(page);
  pages.destroy(page);
  expect(pages.isLive(page)).toBe(false);
  expect(pages.create(0, 8, 2)).toBe(page);
  expect([pages.slot[page], pages.block[page], pages.coverage[page], pages.holds[page], pages.size]).toEqual([8, NONE, 0, 0, 2]);
});

test('pages stay what they are when the table grows', () => {
  const pages = new PageTable();
  const ids = Array.from({ length: 500 }, (_, i) => pages.create(i % 3, i * 2, i % 101));
  expect(ids.map((page) => [pages.lifecycle[page], pages.slot[page], pages.priority[page], pages.block[page]])).toEqual(
    ids.map((_, i) => [i % 3, i * 2, i % 101, NONE]),
  );
  expect(pages.size).toBe(500);
});

test('plans for a page are gone with it', () => {
  const pages = new PageTable();
  const page = pages.create(0, 1, 35);
  pages.plans.set(page, { count: 2 });
  pages.destroy(page);
  expect(pages.create(0, 2, 35)).toBe(page);
  expect(pages.plans.size).toBe(0);
});
