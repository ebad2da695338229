import type { TokenSeq } from '@bufferwise/cache-manager';
import type { BlockRange, Lifecycle } from '@bufferwise/core-policy';

/** One group of a prefix file. */
export interface PrefixGroup {
  readonly lifecycle: Lifecycle;
  readonly layerIds: readonly number[];
  readonly pageBytes: number;
  /** Names how buffers lie in a page, as `arrangementOf`; null where there is one way only. */
  readonly arrangement: string | null;
  /** Blocks whose pages are in the file, ascending. None for an optional group that could not continue at the end of the prefix. */
  readonly ranges: readonly BlockRange[];
  readonly numPages: number;
  /** Names the way in which its numbers are kept in 8 bits; null where they are as they were. */
  readonly form: string | null;
}

/** What a prefix file says of itself. */
export interface PrefixInfo {
  /** Of the form of the file. */
  readonly version: number;
  /** For people; null where nobody gave one. */
  readonly modelName: string | null;
  readonly modelFingerprint: string;
  readonly tokensPerBlock: number;
  /** Of the prefix, whole blocks: what a prompt must begin with. */
  readonly tokens: TokenSeq;
  readonly loraId: bigint | null;
  /** Whether it was exported under a salt. Which one stands nowhere in the file. */
  readonly salted: boolean;
  /** Whether all pages are as they were computed; false with numbers in 8 bits, here or in the store that they came from. */
  readonly exact: boolean;
  /** Whether pages are compressed, where that gained anything. */
  readonly compressed: boolean;
  readonly groups: readonly PrefixGroup[];
  readonly numPages: number;
  /** Bytes of all pages as they are in memory. */
  readonly pageBytes: number;
  /** The key of the last block, in hexadecimal: SHA-256 over scope and tokens. */
  readonly key: string;
}

/** What may be in a file at most, checked before it is read. */
export interface PrefixFileLimits {
  /** Bytes in front of the first page, 4 a token among them. Default 16 MiB. */
  readonly headerBytes?: number;
  /** Bytes of one page in memory. Default 64 MiB. */
  readonly pageBytes?: number;
  /** Bytes of all pages in memory. Default 64 GiB. */
  readonly totalBytes?: number;
}

export const DEFAULT_LIMITS: Required<PrefixFileLimits> = {
  headerBytes: 2 ** 24,
  pageBytes: 2 ** 26,
  totalBytes: 2 ** 36,
};
