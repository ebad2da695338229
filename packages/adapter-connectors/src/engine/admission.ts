import { type BlockKey, keyToHex } from '@bufferwise/cache-manager/outside';
import type { ConnectorSettings } from './connector-options.ts';

/** Decides which texts are worth a write. */
export class Admission {
  readonly #settings: ConnectorSettings['admission'];
  /** Blocks seen once, the latest ones. */
  readonly #seen = new Set<string>();

  constructor(settings: ConnectorSettings['admission']) {
    this.#settings = settings;
  }

  isLongEnough(numTokens: number): boolean {
    return numTokens >= this.#settings.minTokens;
  }

  /**
   * Looks at the blocks of a new request, and remembers them.
   *
   * @returns how many of them, from the first on, may be saved: those that an earlier request had as well
   */
  admit(blocks: readonly BlockKey[]): number {
    if (!this.#settings.secondUse) return blocks.length;
    const names = blocks.map(keyToHex);
    let known = 0;
    // Each key says all that was before it, so what was seen is a beginning.
    while (known < names.length && this.#seen.has(names[known])) known++;
    for (const name of names) {
      this.#seen.delete(name);
      this.#seen.add(name);
    }
    for (const name of this.#seen) {
      if (this.#seen.size <= this.#settings.rememberedBlocks) break;
      this.#seen.delete(name);
    }
    return known;
  }
}
