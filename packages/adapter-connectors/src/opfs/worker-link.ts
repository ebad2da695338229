import type { PageStoreStatistics } from '@bufferwise/adapter-kit';
import { ConnectorError, type ConnectorErrorCode } from '../errors.ts';
import type { OpfsPagesOptions } from './direct-opfs-page-store.ts';
import type { Answer, Ask, CallName, Calls, OpenMessage, SentError } from './protocol.ts';

interface Waiting {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/**
 * A store in a worker, seen from the page: one port, questions and answers by number. When the worker ends, of which no event tells, the browser
 * gives its lock to whoever waits for it: this does, and rejects everything that waits for an answer.
 */
export class WorkerLink {
  readonly #port: MessagePort;
  readonly #waiting = new Map<number, Waiting>();
  readonly #watch = new AbortController();
  readonly #release: () => void;
  #nextId = 1;
  #lost: ConnectorError | undefined;
  #statistics: PageStoreStatistics;

  private constructor(port: MessagePort, statistics: PageStoreStatistics, release: () => void) {
    this.#port = port;
    this.#statistics = statistics;
    this.#release = release;
  }

  /**
   * Has a worker open a store. Rejects with what its `open` rejects with, and with {ConnectorError} `worker-lost` when the worker does not
   * load, ends, or says nothing for `startMs`.
   *
   * @param release what is to be done with the worker in the end; done also when this rejects
   */
  static async open(worker: Worker, options: OpfsPagesOptions, startMs: number, release: () => void): Promise<WorkerLink> {
    const { port1: port, port2 } = new MessageChannel();
    const aliveLock = `bufferwise-alive:${crypto.randomUUID()}`;
    const watch = new AbortController();
    try {
      const statistics = await new Promise<PageStoreStatistics>((resolve, reject) => {
        const lost = (what: string, cause?: unknown) => reject(lostError(what, cause));
        const failed = ({ message }: ErrorEvent) => lost(`its script failed${message ? `: ${message}` : ' to load'}`);
        worker.addEventListener('error', failed, { signal: watch.signal });
        const timer = setTimeout(() => lost(`it said nothing for ${startMs} ms, so its script may be another one`), startMs);
        watch.signal.addEventListener('abort', () => clearTimeout(timer));
        port.onmessage = ({ data }: MessageEvent<Answer>) => {
          if (data.kind === 'alive') {
            clearTimeout(timer);
            whenGranted(aliveLock, watch.signal, () => lost('it ended while the store was opened'));
          } else if (data.kind === 'opened') resolve(data.statistics);
          else if (data.kind === 'not-opened') reject(received(data.error));
        };
        const message: OpenMessage = { bufferwise: 'open-page-store', options, aliveLock };
        worker.postMessage(message, [port2]);
      });
      const link = new WorkerLink(port, statistics, release);
      link.#listen(aliveLock);
      return link;
    } catch (error) {
      port.close();
      release();
      throw error;
    } finally {
      watch.abort();
    }
  }

  /** As the last answer had them. */
  get statistics(): PageStoreStatistics {
    return this.#statistics;
  }

  /** Rejects with what the store rejects with, and with {ConnectorError} `worker-lost` when the worker has ended. */
  ask<Name extends CallName>(call: Name, ask: Calls[Name]['ask'], transfer: Transferable[] = []): Promise<Calls[Name]['answer']> {
    return new Promise((resolve, reject) => {
      if (this.#lost !== undefined) {
        reject(this.#lost);
        return;
      }
      const id = this.#nextId++;
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.#port.postMessage({ ...ask, call, id } as Ask, transfer);
    });
  }

  /** Has the store closed, and lets go of the worker. Settles also when that has ended. */
  async close(): Promise<void> {
    try {
      await this.ask('close', {});
    } catch (error) {
      if (error !== this.#lost) throw error;
    } finally {
      this.#watch.abort();
      this.#port.close();
      this.#release();
    }
  }

  #listen(aliveLock: string): void {
    whenGranted(aliveLock, this.#watch.signal, () => this.#lose('it has ended'));
    this.#port.onmessageerror = () => this.#lose('an answer of it could not be read');
    this.#port.onmessage = ({ data }: MessageEvent<Answer>) => {
      if (data.kind !== 'answer' && data.kind !== 'failed') return;
      this.#statistics = data.statistics;
      const waiting = this.#waiting.get(data.id);
      this.#waiting.delete(data.id);
      if (data.kind === 'answer') waiting?.resolve(data.value);
      else waiting?.reject(received(data.error));
    };
  }

  #lose(what: string): void {
    const error = lostError(what);
    this.#lost = error;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

/** Calls back once a lock is free, unless the signal is aborted before. */
function whenGranted(lock: string, signal: AbortSignal, call: () => void): void {
  navigator.locks
    ?.request(lock, { signal }, () => {
      if (!signal.aborted) call();
    })
    .catch(() => {});
}

function lostError(what: string, cause?: unknown): ConnectorError {
  return new ConnectorError(
    'worker-lost',
    `the worker that keeps the pages is lost: ${what}; open the store anew, and give it a worker that loads @bufferwise/adapter-connectors/opfs-worker as a module`,
    { cause },
  );
}

function received({ code, message, error }: SentError): unknown {
  return code === undefined ? error : new ConnectorError(code as ConnectorErrorCode, message, { cause: error });
}
