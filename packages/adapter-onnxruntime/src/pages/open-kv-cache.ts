import { type CreateKvCacheOptions, type KvCache, type KvCacheManager, PagesLostError } from '@bufferwise/cache-manager';

/**
 * Opens a request on the longest prefix that can be had now. Where there is no room for all of the match, as the partial last block has to be
 * copied, it begins where a block ends, and else from nothing: that costs time, and no request.
 *
 * @param prompt tokens; the last one is never matched, as its logits are asked for
 * @returns active, or suspended with nothing matched where there is no room at all
 */
export async function openKvCache(
  manager: KvCacheManager,
  prompt: Uint32Array,
  options: Pick<CreateKvCacheOptions, 'scope' | 'priority' | 'retention'>,
): Promise<KvCache> {
  const { tokensPerBlock } = manager.layout;
  let lookedUp = Math.max(0, prompt.length - 1);
  for (;;) {
    const kvCache = manager.createKvCache({
      ...options,
      tokens: prompt.subarray(0, lookedUp),
      expectedPromptLength: prompt.length,
    });
    try {
      if ((await resumed(kvCache)) || kvCache.numCommittedTokens === 0) return kvCache;
    } catch (error) {
      kvCache.close();
      throw error;
    }
    const inLastBlock = kvCache.numCommittedTokens % tokensPerBlock;
    lookedUp = inLastBlock === 0 ? 0 : kvCache.numCommittedTokens - inLastBlock;
    kvCache.close();
  }
}

/** A loss is told once each: it continues from what is left. */
async function resumed(kvCache: KvCache): Promise<boolean> {
  for (;;) {
    try {
      return await kvCache.resume();
    } catch (error) {
      if (!(error instanceof PagesLostError)) throw error;
    }
  }
}
