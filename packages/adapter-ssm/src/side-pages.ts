const STORAGE = 0x80;

interface Aside {
  /** Tokens of the sequence that the pages have seen. */
  position: number;
  readonly pages: Map<string, GPUBuffer>;
}

/**
 * Pages of the consumer's own, for sequences that are given matched tokens again over several steps: what a reused page held before the
 * match is in no pool any more, and what is to be filled beside it is computed from that.
 */
export class SidePages {
  readonly #device: GPUDevice;
  readonly #asides = new WeakMap<object, Aside>();
  readonly #idle = new Map<number, GPUBuffer[]>();
  /** Sequences that come to their match in the step that is being recorded. */
  #leaving: object[] = [];

  constructor(device: GPUDevice) {
    this.#device = device;
  }

  /** Whether there are pages of a sequence that have seen exactly so many tokens. */
  has(sequence: object, position: number): boolean {
    return this.#asides.get(sequence)?.position === position;
  }

  /** The page of a sequence in one buffer of one layer; its content is what was written last, and anything at first. */
  page(sequence: object, name: string, bytes: number): GPUBuffer {
    const { pages } = this.#asides.get(sequence) as Aside;
    const page = pages.get(name) ?? this.#idle.get(bytes)?.pop() ?? this.#create(bytes);
    pages.set(name, page);
    return page;
  }

  /** Takes note that a sequence goes on with pages that will have seen `position` tokens. */
  advance(sequence: object, position: number): void {
    const aside = this.#asides.get(sequence);
    if (aside) aside.position = position;
    else this.#asides.set(sequence, { position, pages: new Map() });
  }

  /** Lets go of a sequence's pages with the next step: this one still reads them. */
  leave(sequence: object): void {
    this.#leaving.push(sequence);
  }

  /** To be called before a step is recorded. */
  beginStep(): void {
    for (const sequence of this.#leaving) {
      for (const page of this.#asides.get(sequence)?.pages.values() ?? []) {
        const idle = this.#idle.get(page.size) ?? [];
        idle.push(page);
        this.#idle.set(page.size, idle);
      }
      this.#asides.delete(sequence);
    }
    this.#leaving = [];
  }

  destroy(): void {
    this.beginStep();
    for (const pages of this.#idle.values()) for (const page of pages) page.destroy();
    this.#idle.clear();
  }

  #create(size: number): GPUBuffer {
    return this.#device.createBuffer({ label: 'bufferwise page before a match', size, usage: STORAGE });
  }
}
