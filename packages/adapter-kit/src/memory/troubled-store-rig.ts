import type { PageStore } from '../page-store/page-store.ts';
import { MemoryPageStore, type MemoryPageStoreOptions, MemoryPages } from './memory-page-store.ts';
import { mix } from './mix.ts';

export interface Troubles extends MemoryPageStoreOptions {
  /** Milliseconds that a call takes at most. Default 0. */
  readonly slowMs?: number;
  /** Part of the calls that reject, from 0 to 1. Default 0. */
  readonly failing?: number;
  /** Part of the pages that are damaged when they are asked for, from 0 to 1. Default 0. */
  readonly damaging?: number;
  readonly seed?: number;
}

/** A store of memory with a medium that is slow, fails, is full, or damages pages: the same way each time. */
export class TroubledStore extends MemoryPageStore {
  /** What went wrong so far. */
  readonly happened = { failed: 0, damaged: 0 };
  /** While false, it is a store like any other. */
  isTroubled = true;
  readonly #troubles: Troubles;
  readonly #pages: MemoryPages;
  #state: number;

  constructor(troubles: Troubles) {
    const pages = troubles.pages ?? new MemoryPages();
    super({ ...troubles, pages });
    this.#troubles = troubles;
    this.#pages = pages;
    this.#state = mix(troubles.seed ?? 1, 0x51ab);
  }

  override async has(...[keys, options]: Parameters<PageStore['has']>): ReturnType<PageStore['has']> {
    await this.#suffer(options?.signal);
    return super.has(keys, options);
  }

  override async get(...[keys, options]: Parameters<PageStore['get']>): ReturnType<PageStore['get']> {
    await this.#suffer(options?.signal);
    for (const { key } of keys) {
      const page = this.#pages.byKey.get(key);
      if (page === undefined || !this.#strikes(this.#troubles.damaging)) continue;
      page.sealed = this.#chance() < 0.5 ? page.sealed.subarray(0, page.sealed.length - 3) : page.sealed.map((byte) => byte ^ 1);
      this.happened.damaged++;
    }
    return super.get(keys, options);
  }

  override async put(...[entries, options]: Parameters<PageStore['put']>): ReturnType<PageStore['put']> {
    await this.#suffer(options?.signal);
    return super.put(entries, options);
  }

  async #suffer(signal: AbortSignal | undefined): Promise<void> {
    const { slowMs = 0, failing } = this.#troubles;
    if (slowMs > 0 && this.isTroubled) await new Promise((resolve) => setTimeout(resolve, slowMs * this.#chance()));
    signal?.throwIfAborted();
    if (!this.#strikes(failing)) return;
    this.happened.failed++;
    throw new Error('the medium does not answer');
  }

  #strikes(part = 0): boolean {
    return this.isTroubled && this.#chance() < part;
  }

  /** From 0 to 1. */
  #chance(): number {
    this.#state = mix(this.#state, 0x9e37);
    return (this.#state >>> 0) / 2 ** 32;
  }
}
