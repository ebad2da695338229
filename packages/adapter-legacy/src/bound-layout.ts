import { AdapterError } from '@bufferwise/adapter-kit';
import type { StorageLayout } from '@bufferwise/scratch-allocator';

/** What a consumer was bound to last, and whether it is still open. */
export class BoundLayout {
  readonly #name: string;
  #layout: StorageLayout | undefined;
  #closed = false;

  /** @param name of the consumer, for messages */
  constructor(name: string) {
    this.#name = name;
  }

  /** The layout, of an open consumer. @throws {AdapterError} `plugin-closed`, or `step-refused` before the first `set` */
  open(): StorageLayout {
    this.checkOpen();
    return this.get();
  }

  /** The layout, closed or not. @throws {AdapterError} `step-refused` before the first `set` */
  get(): StorageLayout {
    if (this.#layout === undefined)
      throw new AdapterError('step-refused', `${this.#name} knows no layout yet; call \`bind\` first`);
    return this.#layout;
  }

  set(layout: StorageLayout): void {
    this.#layout = layout;
  }

  /** @throws {AdapterError} `plugin-closed` */
  checkOpen(): void {
    if (this.#closed) throw new AdapterError('plugin-closed', `${this.#name} was closed; make a new one`);
  }

  /** Says whether this was the first time. */
  close(): boolean {
    const first = !this.#closed;
    this.#closed = true;
    return first;
  }
}
