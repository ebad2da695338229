import {
  type BatchDesc,
  type BlockRange,
  type CacheConfig,
  divUp,
  isShareable,
  type LifecycleId,
  scratchRange,
} from '@bufferwise/core-policy';
import type { StorageLayout } from '../layout/storage-layout.ts';
import { unkeptRange } from './unkept-range.ts';

/**
 * Slots that a batch takes in one lifecycle when every request of it is in the middle of its step.
 *
 * Whole blocks of the system prompt count once, and not at all when no request keeps them; private pages are never shared, so
 * there they count for each request. Blocks of a request that are scratch count by what they take of the shared slots.
 */
export function batchSlots(
  layout: StorageLayout,
  id: LifecycleId,
  batch: BatchDesc,
  { swaScratchReuse, commitMinSnapshot }: Pick<CacheConfig, 'swaScratchReuse' | 'commitMinSnapshot'>,
): number {
  const lifecycle = layout.lifecycles.get(id);
  if (lifecycle.kind === 'ssm') return batch.kvCaches.length;
  const { tokensPerBlock } = layout;
  const sharedLength = isShareable(lifecycle.policy) ? (batch.systemPromptLength ?? 0) : 0;
  const sharedBlocks = Math.floor(sharedLength / tokensPerBlock);
  const unkeptAt = (historyLength: number) => unkeptRange(lifecycle, historyLength, tokensPerBlock, commitMinSnapshot);
  let slots = keptShared(batch, sharedBlocks, unkeptAt);
  for (const { capacity, historyLength } of batch.kvCaches) {
    const unkept = unkeptAt(historyLength);
    const ownBlocks = Math.max(0, kept(divUp(capacity, tokensPerBlock), unkept) - kept(sharedBlocks, unkept));
    slots += ownBlocks;
    if (swaScratchReuse === null) continue;
    const step = { historyLength, capacity, maxRewindLen: swaScratchReuse.maxRewindLen };
    const scratch = scratchRange(lifecycle, step, tokensPerBlock);
    const scratchBlocks = Math.max(0, scratch.end - Math.max(scratch.begin, sharedBlocks));
    slots += layout.scratchSlots(id, scratchBlocks) - scratchBlocks;
  }
  return slots;
}

/** Shared blocks that at least one request of the batch still keeps. */
function keptShared(batch: BatchDesc, sharedBlocks: number, unkeptAt: (historyLength: number) => BlockRange): number {
  let begin = 0;
  let end = sharedBlocks;
  for (const { historyLength } of batch.kvCaches) {
    const unkept = unkeptAt(historyLength);
    begin = Math.max(begin, unkept.begin);
    end = Math.min(end, unkept.end);
  }
  return sharedBlocks - Math.max(0, end - begin);
}

/** Of the first `blocks` blocks, those not in the range. */
function kept(blocks: number, unkept: BlockRange): number {
  return blocks - Math.max(0, Math.min(blocks, unkept.end) - unkept.begin);
}
