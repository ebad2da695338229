/**
 * A page store in whatever `unstorage` has a driver for.
 *
 * @packageDocumentation
 */

export { StoreOptionsError } from '../remote/store-options-error.ts';
export { StoreUnavailableError } from '../remote/store-unavailable-error.ts';
export {
  type UnstorageLike,
  UnstoragePageStore,
  type UnstoragePageStoreOptions,
  type UnstoragePageStoreStatistics,
} from './unstorage-page-store.ts';
