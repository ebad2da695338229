/**
 * Pages in the IndexedDB of a browser.
 *
 * @packageDocumentation
 */

export { IndexedDbPageStore, type IndexedDbPageStoreOptions } from './indexeddb-page-store.ts';
