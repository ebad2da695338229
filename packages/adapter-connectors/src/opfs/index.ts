/**
 * Pages in the origin private file system of a browser.
 *
 * @packageDocumentation
 */

export { DirectOpfsPageStore, type OpfsPagesOptions } from './direct-opfs-page-store.ts';
export { OpfsPageStore, type OpfsPageStoreOptions } from './opfs-page-store.ts';
export type { Flush } from './segmented-pages.ts';
