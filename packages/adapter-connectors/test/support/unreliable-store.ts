import type { PageEntry, PageKey, PageStore, PutOutcome } from '@bufferwise/adapter-kit';
import { MemoryPageStore, type MemoryPages } from '@bufferwise/adapter-kit/memory';

/** A store in memory that is slow, full or down, as a test says. */
export class UnreliableStore extends MemoryPageStore implements PageStore {
  /** Called before each call of these names; what it throws is thrown. */
  before: (call: 'has' | 'get' | 'put' | 'delete', keys: readonly PageKey[]) => void | Promise<void> = () => {};
  isFull = false;

  constructor(pages?: MemoryPages) {
    super({ pages });
  }

  override async has(keys: readonly PageKey[]): Promise<readonly boolean[]> {
    await this.before('has', keys);
    return super.has(keys);
  }

  override async get(keys: readonly PageKey[]): Promise<readonly (Uint8Array | null)[]> {
    await this.before('get', keys);
    return super.get(keys);
  }

  override async put(entries: readonly PageEntry[]): Promise<readonly PutOutcome[]> {
    await this.before('put', entries);
    return this.isFull ? entries.map(() => ({ status: 'refused', reason: 'full' })) : super.put(entries);
  }

  override async delete(keys: readonly PageKey[]): Promise<readonly boolean[]> {
    await this.before('delete', keys);
    return super.delete(keys);
  }
}

/** Time that passes when a test says so. */
export class HandClock {
  #now = 0;
  readonly #waiting = new Set<{ until: number; wake: () => void }>();

  now(): number {
    return this.#now;
  }

  wait(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const one = {
        until: this.#now + ms,
        wake: () => {
          this.#waiting.delete(one);
          resolve();
        },
      };
      this.#waiting.add(one);
      signal?.addEventListener('abort', one.wake);
      if (signal?.aborted) one.wake();
    });
  }

  async pass(ms: number): Promise<void> {
    this.#now += ms;
    for (const one of [...this.#waiting]) if (one.until <= this.#now) one.wake();
    await turns();
  }
}

/** Lets everything go on that waits for nobody. */
export async function turns(): Promise<void> {
  for (let i = 0; i < 50; i++) await Promise.resolve();
}
