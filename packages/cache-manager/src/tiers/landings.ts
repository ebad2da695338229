import type { PageId } from '../page/page-table.ts';

/** Pages that set out together for slots of a colder tier. */
export class Landing {
  /** Resolves when every page of it has landed or is lost. Never rejects. */
  readonly done: Promise<void>;
  end: () => void = () => {};

  constructor() {
    this.done = new Promise((resolve) => {
      this.end = resolve;
    });
  }
}

/**
 * Which pages are on their way to the slot that they already have. A page that ends, or that turns up elsewhere, is taken off
 * the list, and whatever arrives for it later is not for it any more.
 */
export class Landings {
  readonly #byPage = new Map<PageId, Landing>();
  readonly #underWay = new Set<Landing>();

  begin(pages: readonly PageId[]): Landing {
    const landing = new Landing();
    this.#underWay.add(landing);
    for (const page of pages) this.#byPage.set(page, landing);
    return landing;
  }

  /** Whether a page still waits for what the landing brings. */
  isAwaited(page: PageId, landing: Landing): boolean {
    return this.#byPage.get(page) === landing;
  }

  has(page: PageId): boolean {
    // Asked for every page that goes, and mostly nothing is under way.
    return this.#byPage.size > 0 && this.#byPage.has(page);
  }

  /** Takes a page off the list: its bytes are there, or no longer wanted. */
  remove(page: PageId): void {
    this.#byPage.delete(page);
  }

  end(landing: Landing): void {
    this.#underWay.delete(landing);
    landing.end();
  }

  /** Resolves when a page is on its way no more. */
  async ofPage(page: PageId): Promise<void> {
    await this.#byPage.get(page)?.done;
  }

  get any(): boolean {
    return this.#underWay.size > 0;
  }

  /** Resolves when everything that is under way now has landed or is lost. */
  async all(): Promise<void> {
    await Promise.all([...this.#underWay].map(({ done }) => done));
  }
}
