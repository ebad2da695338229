import type { EvictionPolicy } from '../../src/index.ts';

/** Names any page of its queue, by chance that follows from a seed. */
export class RandomPolicy implements EvictionPolicy {
  readonly #pages: number[] = [];
  #seed: number;

  constructor(seed: number) {
    this.#seed = seed;
  }

  get count(): number {
    return this.#pages.length;
  }

  push(page: number): void {
    this.#pages.push(page);
    this.#turn();
  }

  remove(page: number): void {
    this.#pages.splice(this.#pages.indexOf(page), 1);
    this.#turn();
  }

  first(): number {
    return this.#pages.length === 0 ? -1 : this.#pages[this.#seed % this.#pages.length];
  }

  [Symbol.iterator](): Iterator<number> {
    return this.#pages[Symbol.iterator]();
  }

  #turn(): void {
    this.#seed = (Math.imul(this.#seed, 1664525) + 1013904223) >>> 0;
  }
}
