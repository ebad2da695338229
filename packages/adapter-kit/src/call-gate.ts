import { AdapterError } from './errors.ts';
import type { CallOptions } from './plugin.ts';

/**
 * What holds for every method of every plugin, in one place: no call once closed, none whose signal is aborted, and a `close` that
 * waits for the calls under way. Plugins may use it; the suites only look at what it does.
 */
export class CallGate {
  readonly #name: string;
  readonly #open = new Set<Promise<unknown>>();
  readonly #closing = new AbortController();
  #closed: Promise<void> | undefined;

  /** @param name of the plugin, for messages */
  constructor(name: string) {
    this.#name = name;
  }

  get closed(): boolean {
    return this.#closed !== undefined;
  }

  /** Aborted by `close`: for calls that would wait for ever otherwise. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Throws {AdapterError} `plugin-closed` once closed. */
  check(): void {
    if (this.closed) throw this.closedError();
  }

  /** Runs a call. Rejects with `plugin-closed` once closed, with the signal's reason once that is aborted; `call` does not begin then. */
  async run<T>(options: CallOptions | undefined, call: () => T | Promise<T>): Promise<T> {
    this.check();
    options?.signal?.throwIfAborted();
    const running = (async () => call())();
    this.#open.add(running);
    try {
      return await running;
    } finally {
      this.#open.delete(running);
    }
  }

  /**
   * A promise that rejects when the signal is aborted or the gate closes: to be raced with what waits for somebody else. `release` it
   * when the wait is over.
   */
  interruption(options: CallOptions | undefined): { promise: Promise<never>; release: () => void } {
    const signal = options?.signal;
    const { closing } = this;
    let reject: (reason: unknown) => void = () => {};
    const promise = new Promise<never>((_, rejectPromise) => {
      reject = rejectPromise;
    });
    promise.catch(() => {});
    const aborted = () => reject(signal?.reason);
    const closed = () => reject(this.closedError());
    // Not by a signal of their own: of several such listeners on one target Node 20 forgets to remove some.
    signal?.addEventListener('abort', aborted);
    closing.addEventListener('abort', closed);
    if (signal?.aborted) aborted();
    else if (this.closed) closed();
    const release = () => {
      signal?.removeEventListener('abort', aborted);
      closing.removeEventListener('abort', closed);
    };
    return { promise, release };
  }

  /** Refuses new calls, waits for those under way however they end, then runs `last`. The second time it waits for the first. */
  close(last: () => void | Promise<void> = () => {}): Promise<void> {
    this.#closed ??= this.#end(last);
    this.#closing.abort();
    return this.#closed;
  }

  async #end(last: () => void | Promise<void>): Promise<void> {
    // A turn later: until then `close` has not returned, and `closed` would not be set.
    await Promise.resolve();
    while (this.#open.size > 0) await Promise.allSettled(this.#open);
    await last();
  }

  closedError(): AdapterError {
    return new AdapterError('plugin-closed', `${this.#name} was closed; make a new one`);
  }
}
