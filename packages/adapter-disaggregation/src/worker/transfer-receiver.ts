import type { PageConnection, StreamId } from '@bufferwise/adapter-kit';
import type { KvCacheManager } from '@bufferwise/cache-manager';
import type { TransferMessage } from '../transfer/transfer-message.ts';
import { listenTo, say } from './connection-ear.ts';
import { type Admit, IncomingTransfer } from './incoming-transfer.ts';
import { ManagerPages } from './manager-pages.ts';
import { TransferTable } from './transfer-table.ts';
import { type TransferWorkerOptions, type WorkerSettings, workerSettings } from './worker-options.ts';

export interface TransferReceiverOptions extends TransferWorkerOptions {
  readonly admit: Admit;
}

/**
 * The receiving end of moves: a decode worker has one, whatever the number of its connections. Of the tries of a request it heeds the latest
 * alone, whichever connection it comes over.
 */
export class TransferReceiver {
  readonly #manager: KvCacheManager;
  readonly #pages: ManagerPages;
  readonly #model: string;
  readonly #admit: Admit;
  readonly #settings: WorkerSettings;
  readonly #table: TransferTable<IncomingTransfer>;
  #closed = false;

  /** @throws {TransferError} `invalid-transfer-options` */
  constructor(options: TransferReceiverOptions) {
    this.#settings = workerSettings(options);
    this.#manager = options.manager;
    this.#pages = new ManagerPages(options.manager, options.device, options.forms);
    this.#model = options.modelFingerprint;
    this.#admit = options.admit;
    this.#table = new TransferTable(this.#settings);
  }

  /** Transfers that are under way. */
  get numOpen(): number {
    return this.#table.numOpen;
  }

  /** Transfers that room is held for. */
  get numHolding(): number {
    return this.#table.all().filter(({ holds }) => holds).length;
  }

  /** Takes requests that come over a connection, until its end. Nobody else may hear it. What was under way over it is lost then. */
  async serve(connection: PageConnection): Promise<void> {
    const error = await listenTo(connection, {
      message: (stream, message) => this.#hear(connection, stream, message),
      pages: ({ request, generation, group }, firstPage, bytes) =>
        this.#find(connection, request, generation)?.come(group, firstPage, bytes),
      broken: (request, generation, reason) => this.#find(connection, request, generation)?.hear({ kind: 'abort', reason }),
    });
    for (const transfer of this.#table.all()) if (transfer.connection === connection) transfer.lost(error.message);
  }

  /** Gives a request up that is on its way here; the sender is told. @returns whether there was one */
  abort(request: string, reason: string): boolean {
    const open = this.#table.of(request).filter(({ isOpen }) => isOpen);
    for (const transfer of open) transfer.abort(reason);
    return open.length > 0;
  }

  /** Gives all of them up. Connections stay the caller's; what comes over them is refused from here on. */
  close(): void {
    this.#closed = true;
    for (const transfer of this.#table.all()) transfer.abort('the receiving worker closes');
    this.#table.clear();
  }

  #find(connection: PageConnection, request: string, generation: number): IncomingTransfer | undefined {
    const transfer = this.#table.get(request, generation);
    return transfer?.connection === connection ? transfer : undefined;
  }

  #hear(connection: PageConnection, { request, generation }: StreamId, message: TransferMessage): void {
    const known = this.#find(connection, request, generation);
    if (known !== undefined) {
      known.hear(message);
      return;
    }
    const { kind } = message;
    if (kind === 'offer') this.#offered(connection, request, generation, message);
    else if (kind === 'abort') void say(connection, request, generation, { kind: 'aborted' });
    else if (kind === 'done' || kind === 'renew')
      void say(connection, request, generation, { kind: 'abort', reason: 'it is not known on the receiving side' });
  }

  #offered(connection: PageConnection, request: string, generation: number, offer: TransferMessage): void {
    const tries = this.#table.of(request);
    const refuse = (reason: string) => void say(connection, request, generation, { kind: 'refuse', reason });
    if (this.#closed) refuse('the receiving worker is closed');
    else if (tries.some((each) => each.generation >= generation))
      refuse('this try or a later one has come over another connection');
    else if (this.#table.isFull) refuse(`${this.#table.numOpen} requests are on their way here, the most at a time`);
    else {
      for (const each of tries) each.abort('the next try has begun');
      const transfer = new IncomingTransfer({
        request,
        generation,
        connection,
        manager: this.#manager,
        pages: this.#pages,
        modelFingerprint: this.#model,
        admit: this.#admit,
        settings: this.#settings,
      });
      this.#table.add(transfer);
      transfer.hear(offer);
    }
  }
}
