/**
 * One prepared prefix in one file: written out of a page store, looked at, and read into another one.
 *
 * @packageDocumentation
 */

export type { PageEncoding } from '../encoding/page-codec.ts';
export type { ByteSource } from './byte-source.ts';
export { type ExportOptions, exportPrefix, type PrefixExport } from './export-prefix.ts';
export { type ImportedPrefix, type ImportOptions, importPrefix } from './import-prefix.ts';
export { type InspectedPrefix, type InspectOptions, inspectPrefix } from './inspect-prefix.ts';
export { type PrefixDifference, PrefixFileError, type PrefixFileErrorCode } from './prefix-file-error.ts';
export type { PrefixFileLimits, PrefixGroup, PrefixInfo } from './prefix-info.ts';
