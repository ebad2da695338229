/**
 * A page store whose medium can neither read nor forge.
 *
 * @packageDocumentation
 */

export { type EncryptedStoreOptions, encryptedStore } from './encrypted-store.ts';
