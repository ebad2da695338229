import type { BufferConfig } from '@bufferwise/core-policy';

/**
 * Pages of a buffer in one block: 1, or more when its pages hold fewer tokens than the block.
 *
 * @param tokensPerBlock tokens of the config's block, a multiple of the buffer's override
 */
export function expansionOf(buffer: BufferConfig, tokensPerBlock: number): number {
  return tokensPerBlock / (buffer.tokensPerBlockOverride ?? tokensPerBlock);
}
