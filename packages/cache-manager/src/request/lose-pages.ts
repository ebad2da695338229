import { NONE } from '../columns.ts';
import type { ManagerState } from '../manager-state.ts';
import type { PageId } from '../page/page-table.ts';
import { beginAgain } from './begin-again.ts';
import { forEachPage, letGo, setPageAt } from './block-pages.ts';
import type { RequestState } from './request-state.ts';

/**
 * The bytes of some pages are gone. The tree forgets them, with what no match can reach without them. So do prefix pins, and the
 * requests that hold them, all of which are suspended: what an active one holds is on a device that is there. They begin again from what
 * is left.
 */
export function losePages(manager: ManagerState, lost: readonly PageId[]): void {
  const { storage, tree, lostPages } = manager;
  const { pages } = storage;
  for (const page of lost) {
    // It may have gone with another.
    if (!pages.isLive(page)) continue;
    lostPages[pages.lifecycle[page]]++;
    if (pages.block[page] !== NONE) tree.remove(page);
  }
  const held = new Set(lost.filter((page) => pages.isLive(page)));
  if (held.size > 0) {
    manager.pins.forget(held);
    const bereft = [...manager.open].filter((request) => forget(request, held));
    for (const request of bereft) beginAgain(request);
  }
  manager.pins.forgetUnlisted();
}

/** Lets go of lost pages. Says whether there were any. */
function forget(state: RequestState, lost: ReadonlySet<PageId>): boolean {
  let any = false;
  forEachPage(state, (page, group, ordinal, beam) => {
    if (!lost.has(page)) return;
    any = true;
    setPageAt(group, ordinal, beam, NONE);
    letGo(state, page);
  });
  return any;
}
