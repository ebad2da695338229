import { MAX_REQUEST_BYTES, type PageConnection } from '@bufferwise/adapter-kit';
import type { ReuseScope, TokenSeq } from '@bufferwise/cache-manager';
import { TransferError } from '../errors.ts';
import { SendTransfer } from '../transfer/send-transfer.ts';
import { MOST_NOTE, type TransferMessage } from '../transfer/transfer-message.ts';
import { type ConnectionListener, listenTo, say } from './connection-ear.ts';
import { ManagerPages } from './manager-pages.ts';
import { type MovingPages, OutgoingTransfer } from './outgoing-transfer.ts';
import { promptDigest } from './prompt-digest.ts';
import { TransferTable } from './transfer-table.ts';
import { type TransferWorkerOptions, type WorkerSettings, workerSettings } from './worker-options.ts';

/** A request that is to move. */
export interface OutgoingMove extends MovingPages {
  /** Name of the request, the same on both sides: up to 255 bytes of UTF-8. */
  readonly request: string;
  /** Which try: 0, 1, 2, … A later one ends an earlier one. */
  readonly generation: number;
  /** Tokens up to the hand-over, at least one: the receiver goes on behind them. */
  readonly tokens: TokenSeq;
  readonly scope?: ReuseScope;
  /** What the receiving worker has to know of the request, up to 32 768 characters. Default: nothing. */
  readonly note?: string;
}

/**
 * The sending end of moves: a prefill worker has one, whatever the number of its connections. It begins to hear a connection with the first
 * request that moves over it; nobody else may.
 */
export class TransferSender {
  readonly #pages: ManagerPages;
  readonly #model: string;
  readonly #settings: WorkerSettings;
  readonly #table: TransferTable<OutgoingTransfer>;
  readonly #connections = new Map<PageConnection, Set<OutgoingTransfer>>();
  #closed = false;

  /** @throws {TransferError} `invalid-transfer-options` */
  constructor(options: TransferWorkerOptions) {
    this.#settings = workerSettings(options);
    this.#pages = new ManagerPages(options.manager, options.device, options.forms);
    this.#model = options.modelFingerprint;
    this.#table = new TransferTable(this.#settings);
  }

  /** Transfers that are under way, and hold pages of requests. */
  get numOpen(): number {
    return this.#table.numOpen;
  }

  /**
   * Begins to move a request. Nothing of it may be computed yet: tell the answer's `progress` how far it is.
   *
   * @throws {TransferError} `too-many-transfers`; `invalid-transfer-options` on a name, a try or a note that cannot be, or on one that
   *   was used; {TokenError} on anything that is no token. The pages are not held then
   */
  send(connection: PageConnection, move: OutgoingMove): OutgoingTransfer {
    const { request, generation, tokens, scope, note = '' } = move;
    checkMove(move);
    if (this.#closed || this.#table.isFull)
      throw new TransferError(
        'too-many-transfers',
        this.#closed
          ? 'this end of transfers was closed; make a new one'
          : `${this.#table.numOpen} requests are on their way; wait for one to end, or raise maxTransfers`,
      );
    const earlier = this.#table.of(request);
    if (earlier.some((each) => each.generation >= generation))
      throw new TransferError(
        'invalid-transfer-options',
        `generation ${generation} of ${JSON.stringify(request)}, or a later one, has begun; count on`,
      );
    const { times, maxPagesBytes } = this.#settings;
    const machine = new SendTransfer({
      layout: this.#pages.layout,
      handover: tokens.length,
      request: { model: this.#model, prompt: promptDigest(tokens, scope), note },
      partBytes: maxPagesBytes,
      times,
    });
    const { pages, release, wake } = move;
    const transfer = new OutgoingTransfer({
      request,
      generation,
      connection,
      manager: this.#pages,
      machine,
      handover: tokens.length,
      settings: this.#settings,
      pages,
      release: () => release.call(move),
      wake: wake && (() => wake.call(move)),
    });
    for (const each of earlier) each.abort('the next try has begun');
    this.#listen(connection).add(transfer);
    this.#table.add(transfer);
    transfer.start();
    return transfer;
  }

  /** Gives all of them up. Connections stay the caller's. */
  close(): void {
    this.#closed = true;
    for (const transfer of this.#table.all()) transfer.abort('the sending worker closes');
    this.#table.clear();
  }

  #listen(connection: PageConnection): Set<OutgoingTransfer> {
    const known = this.#connections.get(connection);
    if (known !== undefined) return known;
    const transfers = new Set<OutgoingTransfer>();
    this.#connections.set(connection, transfers);
    const find = (request: string, generation: number) => {
      const transfer = this.#table.get(request, generation);
      return transfer !== undefined && transfers.has(transfer) ? transfer : undefined;
    };
    const listener: ConnectionListener = {
      message: ({ request, generation }, message) => {
        const transfer = find(request, generation);
        if (transfer !== undefined) transfer.hear(message);
        else this.#answerUnknown(connection, request, generation, message);
        for (const each of transfers) if (this.#table.get(each.request, each.generation) !== each) transfers.delete(each);
      },
      // Pages go the other way.
      pages: () => {},
      broken: (request, generation, reason) => find(request, generation)?.hear({ kind: 'abort', reason }),
    };
    void listenTo(connection, listener).then((error) => {
      this.#connections.delete(connection);
      for (const transfer of transfers) transfer.lost(error.message);
    });
    return transfers;
  }

  /** Whoever waits for a try that is not known here any more is told, so that it lets go. */
  #answerUnknown(connection: PageConnection, request: string, generation: number, { kind }: TransferMessage): void {
    if (kind === 'abort') void say(connection, request, generation, { kind: 'aborted' });
    else if (kind === 'accept' || kind === 'missing' || kind === 'renew')
      void say(connection, request, generation, { kind: 'abort', reason: 'it is not known on the sending side' });
  }
}

function checkMove({ request, generation, tokens, note = '' }: OutgoingMove): void {
  const bytes = new TextEncoder().encode(request).length;
  if (bytes < 1 || bytes > MAX_REQUEST_BYTES) throw invalid(`the request's name has ${bytes} bytes; 1 to ${MAX_REQUEST_BYTES}`);
  if (!Number.isInteger(generation) || generation < 0 || generation >= 2 ** 32)
    throw invalid(`generation is ${generation}; a whole number from 0 on, below 2^32`);
  if (tokens.length < 1) throw invalid('there are no tokens; a request moves with at least one');
  if (note.length > MOST_NOTE) throw invalid(`the note has ${note.length} characters; ${MOST_NOTE} at most`);
}

function invalid(what: string): TransferError {
  return new TransferError('invalid-transfer-options', `a request cannot move: ${what}`);
}
