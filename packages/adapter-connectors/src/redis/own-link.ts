import { setTimeout as sleep } from 'node:timers/promises';
import type { Backoff } from '../remote/backoff.ts';
import type { RedisLink } from './redis-link.ts';
import type { RedisCommandOptions, RedisWords } from './redis-server.ts';

/** A connection from its beginning to its end. Nothing of it rejects or throws but `connect` and `send`. */
export interface RedisConnection {
  /** Tells once or more often that the connection is of no use any more. */
  onBroken: () => void;
  connect(): Promise<void>;
  send(key: string, words: RedisWords, options: RedisCommandOptions): Promise<unknown>;
  /** Ends it at once. Everything that waits for an answer rejects. */
  destroy(): void;
}

export interface OwnLinkOptions {
  /** A new connection, not connected. Never throws. */
  readonly make: () => RedisConnection;
  /** Milliseconds in which a connection must be ready. */
  readonly connectTimeoutMs: number;
  readonly backoff: Backoff;
  /**
   * Whether a broken connection is used until the next one is there. So for a cluster, where it still reaches the other nodes; the one
   * connection to a single server has nothing left to give.
   */
  readonly keepBroken: boolean;
}

/**
 * Keeps a connection, and replaces it as a whole when it breaks: a new one has no half of an answer waiting and knows the cluster as it is
 * now. That is one way to recover for everything: a server that restarted, one that says nothing, a stream that lost its place, a master
 * that became a replica.
 */
export class OwnLink implements RedisLink {
  readonly #options: OwnLinkOptions;
  readonly #closing = new AbortController();
  #connection: RedisConnection | undefined;
  #renewing = false;
  /** The last renewal, which may be over. */
  #renewal: Promise<void> | undefined;
  #connectedAt = 0;
  #connects = 0;
  #tried = () => {};
  /** Settles with the first try to connect, however it ends, and never rejects. */
  readonly firstTry: Promise<void>;

  constructor(options: OwnLinkOptions) {
    this.#options = options;
    this.firstTry = new Promise((resolve) => {
      this.#tried = resolve;
    });
    this.broken();
  }

  get usable(): boolean {
    return this.#connection !== undefined;
  }

  get connects(): number {
    return this.#connects;
  }

  send(key: string, words: RedisWords, options: RedisCommandOptions): Promise<unknown> {
    return this.#connection?.send(key, words, options) ?? Promise.reject(new Error('There is no connection.'));
  }

  /** A connection that lived longer than the longest wait proves that the server is well; a short one may break again at once. */
  healthy(): void {
    if (performance.now() - this.#connectedAt > this.#options.backoff.maxMs) this.#options.backoff.reset();
  }

  broken(): void {
    if (this.#renewing || this.#closing.signal.aborted) return;
    if (!this.#options.keepBroken) this.#drop();
    this.#renewing = true;
    this.#renewal = this.#renew();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#drop();
    await this.#renewal;
  }

  #drop(): void {
    this.#connection?.destroy();
    this.#connection = undefined;
  }

  async #renew(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const connection = await this.#tryOnce(signal);
      if (connection !== undefined && signal.aborted) connection.destroy();
      else if (connection !== undefined) this.#use(connection);
      this.#tried();
      if (connection !== undefined) return;
    }
  }

  #use(connection: RedisConnection): void {
    this.#drop();
    this.#renewing = false;
    this.#connection = connection;
    this.#connectedAt = performance.now();
    this.#connects++;
    connection.onBroken = () => {
      if (this.#connection === connection) this.broken();
    };
  }

  async #tryOnce(signal: AbortSignal): Promise<RedisConnection | undefined> {
    const { make, connectTimeoutMs, backoff } = this.#options;
    const wait = backoff.next();
    if (wait > 0) await sleep(wait, undefined, { signal }).catch(() => {});
    if (signal.aborted) return undefined;
    const connection = make();
    const giveUp = new AbortController();
    const tooLate = sleep(connectTimeoutMs, 'late', { signal: AbortSignal.any([signal, giveUp.signal]) }).catch(() => 'late');
    const connected = connection.connect().then(
      () => 'connected',
      () => 'failed',
    );
    const outcome = await Promise.race([connected, tooLate]);
    giveUp.abort();
    if (outcome === 'connected' && !signal.aborted) return connection;
    connection.destroy();
    return undefined;
  }
}
