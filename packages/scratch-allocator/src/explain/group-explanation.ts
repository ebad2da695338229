import type { CacheConfig, Lifecycle, LifecycleId, ReusePolicy } from '@bufferwise/core-policy';
import type { StorageLayout } from '../layout/storage-layout.ts';
import { maxDecodePages } from '../planning/min-slots.ts';
import { requestPages } from '../planning/request-pages.ts';
import { type Rational, rational } from '../rational.ts';
import { lifecycleWords } from './lifecycle-words.ts';
import { explainScratch, type ScratchExplanation } from './scratch-explanation.ts';

/** One buffer group: what it holds, where, and what it costs. */
export interface GroupExplanation {
  readonly id: LifecycleId;
  readonly lifecycle: Lifecycle;
  /** The lifecycle in words, without its policy. */
  readonly words: string;
  readonly policy: ReusePolicy;
  /** In config order. */
  readonly buffers: readonly BufferExplanation[];
  /** Index of its pool group on the device. */
  readonly poolGroup: number;
  /** Index of its pool group in colder tiers. */
  readonly coldPoolGroup: number;
  /** Index = pool of the pool group. */
  readonly pools: readonly PoolExplanation[];
  /** Bytes of one page over all pools. */
  readonly pageBytes: number;
  /** Bytes of a page for each token of its block; null for recurrent state, which has no tokens. */
  readonly bytesPerToken: Rational | null;
  /** The most pages that a request holds in a decode step; null where that grows with its length. 1 for recurrent state. */
  readonly maxRequestPages: number | null;
  /** Bytes of these. */
  readonly maxRequestBytes: number | null;
  /** What one request holds in this group. Index as in `ExplainOptions.lengths`. */
  readonly requests: readonly RequestExplanation[];
  /** Null where no block ever is scratch. */
  readonly scratch: ScratchExplanation | null;
}

/** One buffer and its place. */
export interface BufferExplanation {
  readonly layerId: number;
  readonly role: string;
  /** Bytes of one page of the buffer, as configured. */
  readonly pageBytes: number;
  /** Pages of the buffer in one block. */
  readonly expansion: number;
  /** Tokens in one page of the buffer; null for recurrent state. */
  readonly tokensPerPage: number | null;
  /** Index into `GroupExplanation.pools`. */
  readonly pool: number;
  /** Bytes from the start of the slot. */
  readonly offset: number;
}

/** What a slot of one pool holds of the group. */
export interface PoolExplanation {
  readonly slotBytes: number;
  /** Buffers side by side in a slot. */
  readonly numBuffers: number;
  /** Bytes of each, expanded. */
  readonly bufferBytes: number;
}

/** A request while it writes its token number `tokens`. */
export interface RequestExplanation {
  readonly tokens: number;
  readonly pages: number;
  readonly bytes: number;
}

/** @throws {UnknownLifecycleError} when there is no such group */
export function explainGroup(
  layout: StorageLayout,
  id: LifecycleId,
  config: Pick<CacheConfig, 'swaScratchReuse' | 'commitMinSnapshot'>,
  { lengths, prefillChunks }: { readonly lengths: readonly number[]; readonly prefillChunks: readonly number[] },
): GroupExplanation {
  const lifecycle = layout.lifecycles.get(id);
  const pageBytes = layout.pageBytes(id);
  const maxRequestPages = maxDecodePages(lifecycle, layout.tokensPerBlock);
  return {
    id,
    lifecycle,
    words: lifecycleWords(lifecycle),
    policy: lifecycle.policy,
    buffers: layout.lifecycles.bufferGrouping[id].map(({ layerId, role }) => {
      const { expansion, pool, offset } = layout.bufferAttr(layerId, role);
      const tokensPerPage = lifecycle.kind === 'ssm' ? null : layout.tokensPerBlock / expansion;
      return { layerId, role, pageBytes: layout.pageStride(layerId, role), expansion, tokensPerPage, pool, offset };
    }),
    poolGroup: layout.poolGroupOf(id),
    coldPoolGroup: layout.coldPoolGroupOf(id),
    pools: layout.coalescedBuffers(id).map(({ singleBufferSize, bufferIds }) => ({
      slotBytes: singleBufferSize * bufferIds.length,
      numBuffers: bufferIds.length,
      bufferBytes: singleBufferSize,
    })),
    pageBytes,
    bytesPerToken: lifecycle.kind === 'ssm' ? null : rational(pageBytes, layout.tokensPerBlock),
    maxRequestPages,
    maxRequestBytes: maxRequestPages === null ? null : maxRequestPages * pageBytes,
    requests: lengths.map((tokens) => {
      const pages = requestPages(layout, id, tokens, config);
      return { tokens, pages, bytes: pages * pageBytes };
    }),
    scratch: explainScratch(layout, id, config, prefillChunks),
  };
}
