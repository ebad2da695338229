import { type CacheConfig, divUp, type LifecycleId } from '@bufferwise/core-policy';
import type { StorageLayout } from '../layout/storage-layout.ts';
import { unkeptRange } from './unkept-range.ts';

/**
 * Pages that a request alone holds in one lifecycle while it writes its token number `length`: what it has written before and
 * still keeps, and the page it writes to. Recurrent state is one page from the first token on.
 *
 * @param length tokens, >= 0; nothing is held for 0
 * @throws {UnknownLifecycleError} when there is no such lifecycle
 */
export function requestPages(
  layout: StorageLayout,
  id: LifecycleId,
  length: number,
  { commitMinSnapshot }: Pick<CacheConfig, 'commitMinSnapshot'>,
): number {
  const { tokensPerBlock } = layout;
  const { begin, end } = unkeptRange(layout.lifecycles.get(id), Math.max(0, length - 1), tokensPerBlock, commitMinSnapshot);
  return divUp(length, tokensPerBlock) - (end - begin);
}
