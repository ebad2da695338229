import {
  AdapterError,
  affinityOf,
  arrangementOf,
  type CallOptions,
  type ConnectorLayout,
  checkedPageStore,
  longestLoad,
  type PageKey,
  PageNames,
  type PageStore,
  sealPage,
  wholeBlockKeys,
} from '@bufferwise/adapter-kit';
import type { ReuseScope, TokenSeq } from '@bufferwise/cache-manager';
import { keyToHex } from '@bufferwise/cache-manager/outside';
import { PageCodec, type PageEncoding } from '../encoding/page-codec.ts';
import { isSalted, loraIdOf } from './compare-prefix.ts';
import { encodeHeader, VERSION } from './header.ts';
import { pagesOf, prefixGroup, sealName, totalsOf } from './prefix-blocks.ts';
import { PrefixFileError } from './prefix-file-error.ts';
import type { PrefixInfo } from './prefix-info.ts';

export interface ExportOptions extends CallOptions {
  readonly store: PageStore;
  /** Whose pages they are. */
  readonly layout: ConnectorLayout;
  /** The longest prefix of these that the store has for all required groups is exported. All of them may be part of it. */
  readonly tokens: TokenSeq;
  /** Under which they were saved. A salt stands nowhere in the file. */
  readonly scope?: ReuseScope;
  /** For people. */
  readonly modelName?: string;
  /** Default: compressed, exact. */
  readonly encoding?: PageEncoding;
}

/** A prefix that a store has, as the bytes of a file: what is written is read from the store piece by piece. */
export interface PrefixExport extends AsyncIterable<Uint8Array> {
  readonly info: PrefixInfo;
  /** The same bytes as a stream. Each call reads the store anew, as each iteration does. */
  stream(): ReadableStream<Uint8Array>;
  /** The same bytes at once, in memory. */
  bytes(): Promise<Uint8Array>;
}

/** Bytes of pages that are asked of a store at a time, or one page. */
const BATCH_BYTES = 1 << 23;

/**
 * The longest prefix of some tokens that a store has for all required groups, as a file: every page that a request needs to go on
 * behind it. Optional groups are in it where they have all they need. Null when the store has none.
 *
 * Rejects with {PrefixFileError} `prefix-file-too-large` when there is more to say of the prefix than a header holds: many thousand digests. Iterating rejects with {PrefixFileError} `prefix-lost` when the store loses a page meanwhile: what was written until then is refused as damaged.
 * Rejects with what the store rejects with, {AdapterError} `private-group`, and the signal's reason.
 */
export async function exportPrefix(options: ExportOptions): Promise<PrefixExport | null> {
  const { layout, tokens, scope, modelName = null, encoding = {}, signal } = options;
  const store = checkedPageStore(options.store);
  const ofOne = layout.groups.find(({ lifecycle }) => lifecycle.policy === 'private');
  if (ofOne !== undefined)
    throw new AdapterError(
      'private-group',
      `exportPrefix: group ${ofOne.groupId} is private, and its pages are their request's alone; leave it out`,
    );
  const blocks = wholeBlockKeys(tokens, scope, layout.tokensPerBlock);
  const affinity = affinityOf(blocks);
  const groups = layout.groups.map((group) => ({
    ...group,
    names: new PageNames(layout, group),
    codec: new PageCodec(group, encoding),
  }));
  const names = groups.flatMap((group) => blocks.map((block) => group.names.name(block, affinity)));
  const there = await presentOf(store, names, signal);
  // One more than there are, since the last token of a prompt is always left to be computed.
  const prompt = { numTokens: tokens.length + 1, computedTokens: 0, tokensPerBlock: layout.tokensPerBlock };
  const found = longestLoad(groups, prompt, (group, ordinal) => there.has(group.names.name(blocks[ordinal], affinity).key));
  if (found === null) return null;
  const described = groups.map(({ codec, ...group }) =>
    prefixGroup(
      { ...group, arrangement: arrangementOf(group.buffers), form: codec.form },
      found.groups.includes(group.groupId) ? found.end : 0,
      layout.tokensPerBlock,
    ),
  );
  const info: PrefixInfo = {
    version: VERSION,
    modelName,
    modelFingerprint: layout.modelFingerprint,
    tokensPerBlock: layout.tokensPerBlock,
    tokens: ownTokens(tokens, found.end),
    loraId: loraIdOf(scope),
    salted: isSalted(scope),
    exact: store.exact !== false && groups.every(({ codec }) => codec.isExact),
    compressed: encoding.compress ?? true,
    key: keyToHex(blocks[found.end / layout.tokensPerBlock - 1]),
    groups: described,
    ...totalsOf(described),
  };
  async function* bytes(): AsyncGenerator<Uint8Array> {
    yield encodeHeader(info);
    const pages = pagesOf(info.groups);
    for (let batch = nextBatch(pages); batch.length > 0; batch = nextBatch(pages)) {
      const asked = batch.map(({ group, block }) => groups[group].names.name(blocks[block], affinity));
      const read = await store.get(asked, { signal });
      for (const [i, page] of batch.entries()) {
        const bytesOfPage = read[i];
        if (bytesOfPage?.length !== groups[page.group].pageBytes) throw lost(asked[i]);
        yield sealPage(sealName(info.key, page), await groups[page.group].codec.encode(bytesOfPage));
      }
    }
  }
  /** Of one group, as many as may be read at a time. */
  function nextBatch(pages: ReturnType<typeof pagesOf>): { group: number; block: number }[] {
    const batch: { group: number; block: number }[] = [];
    let most = store.limits.maxBatch;
    while (batch.length < most) {
      const { done, value } = pages.next();
      if (done) break;
      batch.push(value);
      most = Math.min(most, Math.max(1, Math.floor(BATCH_BYTES / groups[value.group].pageBytes)));
    }
    return batch;
  }
  return {
    info,
    [Symbol.asyncIterator]: bytes,
    stream: () => streamOf(bytes()),
    bytes: () => collected(bytes()),
  };
}

function ownTokens(tokens: TokenSeq, end: number): TokenSeq {
  const own = Array.from(tokens as ArrayLike<number | Uint8Array>).slice(0, end);
  const isToken = (token: number | Uint8Array): token is number => typeof token === 'number';
  return own.every(isToken) ? Uint32Array.from(own) : own.map((token) => (isToken(token) ? token : token.slice()));
}

async function presentOf(store: PageStore, names: readonly PageKey[], signal: AbortSignal | undefined): Promise<Set<string>> {
  const there = new Set<string>();
  for (let i = 0; i < names.length; i += store.limits.maxBatch) {
    const batch = names.slice(i, i + store.limits.maxBatch);
    const answers = await store.has(batch, { signal });
    batch.forEach(({ key }, j) => {
      if (answers[j]) there.add(key);
    });
  }
  return there;
}

function streamOf(pieces: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await pieces.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await pieces.return(undefined);
    },
  });
}

async function collected(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  const bytes = new Uint8Array(all.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of all) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

function lost({ key }: PageKey): PrefixFileError {
  return new PrefixFileError(
    'prefix-lost',
    `the store lost page ${key} while its prefix was exported; compute the prefix again, and export it anew`,
  );
}
