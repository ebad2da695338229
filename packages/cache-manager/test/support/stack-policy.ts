import type { EvictionPolicy } from '../../src/index.ts';

/** Most recently let go first, whatever its priority. */
export class StackPolicy implements EvictionPolicy {
  readonly pages: number[] = [];

  get count(): number {
    return this.pages.length;
  }

  push(page: number): void {
    this.pages.push(page);
  }

  remove(page: number): void {
    this.pages.splice(this.pages.indexOf(page), 1);
  }

  first(): number {
    return this.pages.at(-1) ?? -1;
  }

  [Symbol.iterator](): Iterator<number> {
    return this.pages[Symbol.iterator]();
  }
}
