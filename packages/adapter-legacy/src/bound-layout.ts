import { AdapterError, type ConsumerStep } from '@bufferwise/adapter-kit';
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

  /**
   * The layout, for a step.
   *
   * @throws {AdapterError} `plugin-closed`; `step-refused` before the first `set`, and for tables of another layout or of other requests
   */
  getFor({ pages, requests }: ConsumerStep): StorageLayout {
    this.checkOpen();
    const layout = this.get();
    if (pages.layout !== layout)
      throw this.refused('its tables are of another layout than the one that was bound; bind to that of the manager');
    if (pages.numRequests !== requests.length)
      throw this.refused(`there are ${requests.length} requests and tables for ${pages.numRequests}`);
    return layout;
  }

  /** An error to throw: `step-refused`, with the consumer's name and a reason. */
  refused(why: string): AdapterError {
    return new AdapterError('step-refused', `${this.#name} cannot do this step: ${why}`);
  }

  /** The layout, closed or not. @throws {AdapterError} `step-refused` before the first `set` */
  get(): StorageLayout {
    if (this.#layout === undefined) throw this.refused('it knows no layout yet; call `bind` first');
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
