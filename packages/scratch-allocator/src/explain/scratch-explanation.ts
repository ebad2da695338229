import { type CacheConfig, divUp, type LifecycleId, scratchRange } from '@bufferwise/core-policy';
import type { StorageLayout } from '../layout/storage-layout.ts';
import type { Rational } from '../rational.ts';

/** What sharing scratch slots saves in one windowed group. */
export interface ScratchExplanation {
  /** Whether the config turns it on. When it does not, the chunks tell what it would save, with no rewind margin. */
  readonly enabled: boolean;
  /** Tokens at the end of a chunk that stay out of scratch. */
  readonly maxRewindLen: number;
  /** The share of a slot that one scratch block takes. */
  readonly fraction: Rational;
  /** Index as in `ExplainOptions.prefillChunks`. */
  readonly chunks: readonly ScratchChunk[];
}

/** A prefill of so many tokens from an empty request, in one step. */
export interface ScratchChunk {
  readonly tokens: number;
  /** Pages that its blocks take when each has one of its own. */
  readonly pages: number;
  /** Blocks that are stale once the step is done. */
  readonly scratchBlocks: number;
  /** Slots that these share. */
  readonly scratchSlots: number;
  /** Slots that the step takes: those shared, and a page for every other block. */
  readonly slots: number;
  /** `(pages - slots) × page bytes`. */
  readonly bytesSaved: number;
}

/** What scratch does for a group; null where no block ever is scratch: without a window, and for recurrent state. */
export function explainScratch(
  layout: StorageLayout,
  id: LifecycleId,
  { swaScratchReuse }: Pick<CacheConfig, 'swaScratchReuse'>,
  prefillChunks: readonly number[],
): ScratchExplanation | null {
  const lifecycle = layout.lifecycles.get(id);
  if (lifecycle.kind === 'ssm' || lifecycle.windowSize === null) return null;
  const maxRewindLen = swaScratchReuse?.maxRewindLen ?? 0;
  const chunks = prefillChunks.map((tokens): ScratchChunk => {
    const pages = divUp(tokens, layout.tokensPerBlock);
    const { begin, end } = scratchRange(lifecycle, { historyLength: 0, capacity: tokens, maxRewindLen }, layout.tokensPerBlock);
    const scratchBlocks = end - begin;
    const scratchSlots = layout.scratchSlots(id, scratchBlocks);
    const slots = pages - scratchBlocks + scratchSlots;
    return { tokens, pages, scratchBlocks, scratchSlots, slots, bytesSaved: (pages - slots) * layout.pageBytes(id) };
  });
  return { enabled: swaScratchReuse !== null, maxRewindLen, fraction: layout.scratchUtilization(id), chunks };
}
