import { type PageId, pageAt } from '../page/page-table.ts';
import type { EvictablePages } from './eviction-policy.ts';
import type { EvictionView } from './eviction-view.ts';
import type { PageUse } from './page-use.ts';

/**
 * What a policy of the caller sees: pages by number from 0 on, as it may want to keep columns of its own. `GuardedPolicy` tells it
 * the same numbers.
 */
export class NumberedPages implements EvictablePages {
  readonly view: EvictionView;

  constructor(view: EvictionView) {
    this.view = view;
  }

  get slots(): number {
    return this.view.slots;
  }

  get numGroups(): number {
    return this.view.numGroups;
  }

  get size(): number {
    return this.view.table.size;
  }

  priorityOf(page: PageId): number {
    return this.view.table.priority[pageAt(page)];
  }

  groupOf(page: PageId): number {
    return this.view.table.lifecycle[pageAt(page)];
  }

  reusesOf(page: PageId): number {
    return this.view.table.reuses[pageAt(page)];
  }

  useOf(page: PageId): PageUse {
    return this.view.table.use[pageAt(page)];
  }

  depthOf(page: PageId): number {
    return this.view.depthOf(pageAt(page));
  }

  savedTokensOf(page: PageId): number {
    return this.view.savedTokensOf(pageAt(page));
  }

  isLeaf(page: PageId): boolean {
    return this.view.isLeaf(pageAt(page));
  }

  contentHashOf(page: PageId): number {
    return this.view.contentHashOf(pageAt(page));
  }
}
