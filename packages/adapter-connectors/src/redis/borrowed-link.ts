import type { Backoff } from '../remote/backoff.ts';
import type { RedisLink } from './redis-link.ts';
import type { RedisClientLike, RedisClusterLike, RedisCommandOptions, RedisWords } from './redis-server.ts';

/** A client that belongs to somebody else: it is left alone for a while after it failed, and never closed. */
export class BorrowedLink implements RedisLink {
  readonly connects = 0;
  readonly #server: { readonly client: RedisClientLike } | { readonly clusterClient: RedisClusterLike };
  readonly #backoff: Backoff;
  #restUntil = 0;

  constructor(server: { readonly client: RedisClientLike } | { readonly clusterClient: RedisClusterLike }, backoff: Backoff) {
    this.#server = server;
    this.#backoff = backoff;
  }

  get usable(): boolean {
    if ('client' in this.#server && this.#server.client.isReady === false) return false;
    return performance.now() >= this.#restUntil;
  }

  send(key: string, words: RedisWords, options: RedisCommandOptions): Promise<unknown> {
    return 'client' in this.#server
      ? this.#server.client.sendCommand(words, options)
      : this.#server.clusterClient.sendCommand(key, false, words, options);
  }

  healthy(): void {
    this.#backoff.reset();
  }

  broken(): void {
    if (this.usable) this.#restUntil = performance.now() + this.#backoff.next();
  }

  async close(): Promise<void> {}
}
