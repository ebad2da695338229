import {
  type BatchDesc,
  type CacheConfig,
  divUp,
  type Lifecycle,
  type LifecycleId,
  scratchRange,
  staleRange,
} from '@bufferwise/core-policy';
import type { StorageLayout } from '../layout/storage-layout.ts';

/**
 * Slots that a batch takes in one lifecycle when every request of it is in the middle of its step.
 *
 * Whole blocks of the system prompt count once, and not at all when they are stale for every request. Blocks of a request that
 * are scratch count by what they take of the shared slots.
 */
export function batchSlots(
  layout: StorageLayout,
  id: LifecycleId,
  batch: BatchDesc,
  { swaScratchReuse }: Pick<CacheConfig, 'swaScratchReuse'>,
): number {
  const lifecycle = layout.lifecycles.get(id);
  if (lifecycle.kind === 'ssm') return batch.kvCaches.length;
  const { tokensPerBlock } = layout;
  const sharedBlocks = Math.floor((batch.systemPromptLength ?? 0) / tokensPerBlock);
  let slots = neededShared(lifecycle, batch, sharedBlocks, tokensPerBlock);
  for (const { capacity, historyLength } of batch.kvCaches) {
    const stale = staleRange(lifecycle, historyLength, tokensPerBlock);
    const ownBlocks = Math.max(0, withoutStale(divUp(capacity, tokensPerBlock), stale) - withoutStale(sharedBlocks, stale));
    slots += ownBlocks;
    if (swaScratchReuse === null) continue;
    const step = { historyLength, capacity, maxRewindLen: swaScratchReuse.maxRewindLen };
    const scratch = scratchRange(lifecycle, step, tokensPerBlock);
    const scratchBlocks = Math.max(0, scratch.end - Math.max(scratch.begin, sharedBlocks));
    slots += layout.scratchSlots(id, scratchBlocks) - scratchBlocks;
  }
  return slots;
}

/** Shared blocks that at least one request of the batch still reads. */
function neededShared(lifecycle: Lifecycle, batch: BatchDesc, sharedBlocks: number, tokensPerBlock: number): number {
  let begin = 0;
  let end = sharedBlocks;
  for (const { historyLength } of batch.kvCaches) {
    const stale = staleRange(lifecycle, historyLength, tokensPerBlock);
    begin = Math.max(begin, stale.begin);
    end = Math.min(end, stale.end);
  }
  return sharedBlocks - Math.max(0, end - begin);
}

/** Of the first `blocks` blocks, those not in the stale range. */
function withoutStale(blocks: number, stale: { begin: number; end: number }): number {
  return blocks - Math.max(0, Math.min(blocks, stale.end) - stale.begin);
}
