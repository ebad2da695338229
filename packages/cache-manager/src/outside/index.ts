/**
 * Names of blocks and checksums of pages, without the manager: for plugins that keep pages outside of the process.
 *
 * @packageDocumentation
 */

export { keyToHex } from '../events/block-hash.ts';
export { crc32c } from '../tiers/crc32c.ts';
export { type BlockKey, blockKey, blockKeys, rootKey } from '../tree/block-key.ts';
