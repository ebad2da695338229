/**
 * A page store in Valkey or Redis, one server or a cluster. Node only; needs the package `redis`.
 *
 * @packageDocumentation
 */

export type { BackoffOptions } from '../remote/backoff.ts';
export { StoreOptionsError } from '../remote/store-options-error.ts';
export { RedisPageStore, type RedisPageStoreOptions, type RedisPageStoreStatistics } from './redis-page-store.ts';
export type { RedisClientLike, RedisClusterLike, RedisCommandOptions, RedisServer, RedisWords } from './redis-server.ts';
