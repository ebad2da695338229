/**
 * Pages in files, for Node.
 *
 * @packageDocumentation
 */

export { FilePageStore, type FilePageStoreOptions } from './file-page-store.ts';
export type { Fsync } from './page-folder.ts';
