import type { RedisClientOptions, RedisClusterOptions } from 'redis';

/** Words of a command as they go over the wire: text, or bytes as they are. */
export type RedisWords = readonly (string | Buffer)[];

/** What is passed along with a command. */
export interface RedisCommandOptions {
  readonly abortSignal?: AbortSignal;
  /** By the first byte of a reply: the class that its bytes come back in. */
  readonly typeMapping?: Readonly<Record<number, unknown>>;
}

/** What of a client (`createClient`) or of a pool (`createClientPool`) of `redis` is used. */
export interface RedisClientLike {
  readonly isReady?: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: each major version has its own type of options, and all take these.
  sendCommand(words: any, options?: any): Promise<unknown>;
}

/** What of a cluster client (`createCluster`) of `redis` is used. */
export interface RedisClusterLike {
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  sendCommand(firstKey: any, isReadonly: any, words: any, options?: any): Promise<unknown>;
}

/**
 * Where the pages are: one server, or a cluster. With options the store makes its client, keeps it connected and ends it; a client that is
 * passed is connected already, is only used, and stays open when the store closes. Reconnecting is then its owner's matter; make it with
 * `disableOfflineQueue: true`, or commands wait in it for a server that is gone until their time is over.
 */
export type RedisServer =
  | { readonly single: RedisClientOptions }
  | { readonly cluster: RedisClusterOptions }
  | { readonly client: RedisClientLike }
  | { readonly clusterClient: RedisClusterLike };
