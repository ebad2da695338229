/**
 * The best page store that a browser has.
 *
 * @packageDocumentation
 */

export { type BrowserStore, type BrowserStoreOptions, openBrowserStore } from './open-browser-store.ts';
