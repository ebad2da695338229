import { expect, test } from 'vitest';
import { PageTable } from '../page/page-table.ts';
import { Landings } from './landings.ts';

function setOut(count: number) {
  const pages = new PageTable();
  const ids = Array.from({ length: count }, (_, slot) => pages.create(0, slot, 35, 1));
  const landings = new Landings();
  return { ids, landings, landing: landings.begin(ids) };
}

test('a page is under way until it is taken off the list', () => {
  const { ids, landings, landing } = setOut(2);
  expect(ids.map((page) => [landings.has(page), landings.isAwaited(page, landing)])).toEqual([
    [true, true],
    [true, true],
  ]);
  landings.remove(ids[0]);
  landings.remove(ids[0]);
  expect(ids.map((page) => landings.has(page))).toEqual([false, true]);
});

test('what arrives for a page that has set out again is not for it', () => {
  const { ids, landings, landing } = setOut(1);
  landings.remove(ids[0]);
  const again = landings.begin(ids);
  expect([landings.isAwaited(ids[0], landing), landings.isAwaited(ids[0], again)]).toEqual([false, true]);
});

test('whoever waits for a page, or for all, waits until the landing has ended', async () => {
  const { ids, landings, landing } = setOut(1);
  const log: string[] = [];
  const waiting = [landings.ofPage(ids[0]).then(() => log.push('page')), landings.all().then(() => log.push('all'))];
  await Promise.resolve();
  expect([log, landings.any]).toEqual([[], true]);
  landings.remove(ids[0]);
  landings.end(landing);
  await Promise.all(waiting);
  expect([log.sort(), landings.any]).toEqual([['all', 'page'], false]);
  await landings.ofPage(ids[0]);
});
