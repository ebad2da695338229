import type { BackoffOptions } from '../remote/backoff.ts';
import { Rest } from '../remote/rest.ts';
import type { RedisLink } from './redis-link.ts';
import type { RedisClientLike, RedisClusterLike, RedisCommandOptions, RedisWords } from './redis-server.ts';

type Borrowed = { readonly client: RedisClientLike } | { readonly clusterClient: RedisClusterLike };

/** A client that belongs to somebody else: it is left alone for a while after it failed, and never closed. */
export class BorrowedLink implements RedisLink {
  readonly connects = 0;
  readonly #server: Borrowed;
  readonly #rest: Rest;

  constructor(server: Borrowed, backoff?: BackoffOptions) {
    this.#server = server;
    this.#rest = new Rest(backoff);
  }

  get usable(): boolean {
    if ('client' in this.#server && this.#server.client.isReady === false) return false;
    return this.#rest.over;
  }

  send(key: string, words: RedisWords, options: RedisCommandOptions): Promise<unknown> {
    return 'client' in this.#server
      ? this.#server.client.sendCommand(words, options)
      : this.#server.clusterClient.sendCommand(key, false, words, options);
  }

  healthy(): void {
    this.#rest.succeeded();
  }

  broken(): void {
    this.#rest.failed();
  }

  async close(): Promise<void> {}
}
