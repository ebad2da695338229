/**
 * A page store in a bucket of S3, or of a server that speaks its protocol.
 *
 * @packageDocumentation
 */

export type { BackoffOptions } from '../remote/backoff.ts';
export { StoreOptionsError } from '../remote/store-options-error.ts';
export { StoreUnavailableError } from '../remote/store-unavailable-error.ts';
export { S3PageStore, type S3PageStoreOptions, type S3PageStoreStatistics } from './s3-page-store.ts';
