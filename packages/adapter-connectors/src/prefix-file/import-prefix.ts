import {
  affinityOf,
  type CallOptions,
  type ConnectorLayout,
  checkedPageStore,
  type PageEntry,
  PageNames,
  type PageStore,
  type PutOutcome,
  wholeBlockKeys,
} from '@bufferwise/adapter-kit';
import type { ReuseScope } from '@bufferwise/cache-manager';
import { PageCodec } from '../encoding/page-codec.ts';
import { ByteReader, type ByteSource } from './byte-source.ts';
import { checkScope, matchGroups } from './compare-prefix.ts';
import { readHeader } from './header.ts';
import { damaged, PrefixFileError } from './prefix-file-error.ts';
import { DEFAULT_LIMITS, type PrefixFileLimits, type PrefixInfo } from './prefix-info.ts';
import { readPages } from './read-pages.ts';

export interface ImportOptions extends CallOptions {
  readonly store: PageStore;
  /** Whose pages are wanted. */
  readonly layout: ConnectorLayout;
  /**
   * Under which requests will find the prefix. Its LoRA must be that of the file; its salt, too, where the file was exported under one. A file
   * without a salt may come under any.
   */
  readonly scope?: ReuseScope;
  readonly limits?: PrefixFileLimits;
}

/** What became of the pages of a file. */
export interface ImportedPrefix {
  readonly info: PrefixInfo;
  readonly stored: number;
  /** Were there already. */
  readonly present: number;
  /** Found no room. */
  readonly refused: number;
  /** Whether all pages are in the store now, so that requests can begin with the prefix. */
  readonly isComplete: boolean;
}

/** Bytes of pages that are handed to a store at a time, or one page. */
const BATCH_BYTES = 1 << 23;

/**
 * Puts the pages of a prefix file into a store, where requests find them that go on behind the prefix. Read once, piece by piece: about 8 MiB
 * of pages are in memory at a time.
 *
 * Rejects with {PrefixFileError}. For what the header says, which is all of `prefix-file-version`, `prefix-file-mismatch`, `prefix-file-scope`,
 * `prefix-file-inexact` and `prefix-file-too-large`, the store is as it was. Only `prefix-file-damaged` may come later: each page was
 * whole that is in the store then, and the rest is missing, so nobody begins with a part of the prefix that he cannot continue. Where nothing
 * must be stored of a damaged file, `inspectPrefix` it with `verify` before. Rejects with what source and store reject with, and the
 * signal's reason.
 *
 * Sums tell damage, not fraud: take files only from whom you would take weights.
 */
export async function importPrefix(source: ByteSource, options: ImportOptions): Promise<ImportedPrefix> {
  const { layout, scope, limits, signal } = options;
  signal?.throwIfAborted();
  const store = checkedPageStore(options.store);
  const reader = new ByteReader(source);
  try {
    const info = await readHeader(reader, { ...DEFAULT_LIMITS, ...limits });
    const groups = matchGroups(
      info,
      layout,
      layout.groups.map((group) => ({ ...group, codec: new PageCodec(group, { int8: { states: true } }) })),
    );
    checkScope(info, scope);
    checkStore(info, store);
    const blocks = wholeBlockKeys(info.tokens, scope, info.tokensPerBlock);
    const affinity = affinityOf(blocks);
    const names = groups.map((group) => new PageNames(layout, group));
    const outcomes: PutOutcome[] = [];
    let batch: PageEntry[] = [];
    let batchBytes = 0;
    const flush = async () => {
      outcomes.push(...(await store.put(batch, { signal })));
      batch = [];
      batchBytes = 0;
    };
    for await (const { group, block, encoded } of readPages(reader, info)) {
      signal?.throwIfAborted();
      const { codec, pageBytes } = groups[group];
      const bytes = await codec.decode(encoded, pageBytes);
      if (bytes?.length !== pageBytes) throw damaged(`has a page of group ${group}, block ${block} that is none`);
      if (batch.length === store.limits.maxBatch || (batch.length > 0 && batchBytes + pageBytes > BATCH_BYTES)) await flush();
      batch.push({ ...names[group].name(blocks[block], affinity), bytes });
      batchBytes += pageBytes;
    }
    await flush();
    const numOf = (status: PutOutcome['status']) => outcomes.filter((outcome) => outcome.status === status).length;
    const refused = numOf('refused');
    return { info, stored: numOf('stored'), present: numOf('exists'), refused, isComplete: refused === 0 };
  } finally {
    await reader.cancel();
  }
}

/** @throws {PrefixFileError} `prefix-file-inexact` or `prefix-file-too-large` when the store is not for such pages */
function checkStore(info: PrefixInfo, store: PageStore): void {
  if (!info.exact && store.exact !== false)
    throw new PrefixFileError(
      'prefix-file-inexact',
      `the prefix file has inexact pages, and ${store.name} is for exact ones; import it into a store with int8, or export it without`,
    );
  const { maxPageBytes } = store.limits;
  const large = info.groups.find(({ pageBytes, numPages }) => numPages > 0 && pageBytes > maxPageBytes);
  if (large !== undefined)
    throw new PrefixFileError(
      'prefix-file-too-large',
      `the prefix file has pages of ${large.pageBytes} bytes, and ${store.name} takes ${maxPageBytes} at most; take another store`,
    );
}
