import type { CallOptions } from '@bufferwise/adapter-kit';
import { ByteReader, type ByteSource } from './byte-source.ts';
import { readHeader } from './header.ts';
import { DEFAULT_LIMITS, type PrefixFileLimits, type PrefixInfo } from './prefix-info.ts';
import { readPages } from './read-pages.ts';

export interface InspectOptions extends CallOptions {
  /** Reads the whole file, and looks at the sum of every page. Default false: the header alone is read. */
  readonly verify?: boolean;
  readonly limits?: PrefixFileLimits;
}

export interface InspectedPrefix extends PrefixInfo {
  /** Bytes of the file; null unless it was verified. */
  readonly fileBytes: number | null;
}

/**
 * What a prefix file says of itself. No scope is needed, also where it was exported under a salt.
 *
 * Rejects with {PrefixFileError} `prefix-file-damaged`, `prefix-file-version`, `prefix-file-too-large`; with what the source rejects with, and the
 * signal's reason.
 */
export async function inspectPrefix(source: ByteSource, options: InspectOptions = {}): Promise<InspectedPrefix> {
  const { verify = false, limits, signal } = options;
  signal?.throwIfAborted();
  const reader = new ByteReader(source);
  try {
    const info = await readHeader(reader, { ...DEFAULT_LIMITS, ...limits });
    if (!verify) return { ...info, fileBytes: null };
    for await (const _ of readPages(reader, info)) signal?.throwIfAborted();
    return { ...info, fileBytes: reader.position };
  } finally {
    await reader.cancel();
  }
}
