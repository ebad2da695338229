import type { ReuseScope, TokenSeq } from '@bufferwise/cache-manager';
import { type BlockKey, blockKey, blockKeys, keyToHex, rootKey } from '@bufferwise/cache-manager/outside';
import { lifecycleKey } from '@bufferwise/core-policy';
import type { PageKey } from '../page-store/page-key.ts';
import type { ConnectorGroup, ConnectorLayout } from './kv-connector.ts';

const utf8 = new TextEncoder();

/**
 * Names of the pages of one group outside of the process: 64 hexadecimal digits for what a page of the group is, a hyphen, and the 64
 * digits of the block's key. The first are SHA-256 over the model's fingerprint, the tokens of a block, what the lifecycle means, its
 * layers, the bytes of a page and which buffer lies where in them; the second over scope and all tokens up to the end of the block. So no page is found under another
 * model, group, layout, scope or text.
 */
export class PageNames {
  readonly prefix: string;

  constructor({ modelFingerprint, tokensPerBlock }: ConnectorLayout, group: ConnectorGroup) {
    const { lifecycle, layerIds, pageBytes, buffers } = group;
    const arrangement = arrangementOf(buffers);
    const meaning = JSON.stringify([modelFingerprint, tokensPerBlock, lifecycleKey(lifecycle), layerIds, pageBytes, arrangement]);
    this.prefix = `${keyToHex(blockKey(rootKey(), utf8.encode(meaning)))}-`;
  }

  /** @param affinity what all pages of one text have in common, such as `affinityOf` its blocks */
  name(block: BlockKey, affinity: string): PageKey {
    return { key: `${this.prefix}${keyToHex(block)}`, affinity };
  }
}

/** Which buffer lies where in a page, as 64 hexadecimal digits; null where there is one way only. What its numbers are does not count. */
export function arrangementOf(buffers: ConnectorGroup['buffers']): string | null {
  if (buffers === undefined) return null;
  const places = buffers.map(({ layerId, role, offset, bytes, pagesPerBlock = 1 }) => [
    layerId,
    role,
    offset,
    bytes,
    pagesPerBlock,
  ]);
  return keyToHex(blockKey(rootKey(), utf8.encode(JSON.stringify(places))));
}

/** Keys of the whole blocks of a text. */
export function wholeBlockKeys(tokens: TokenSeq, scope: ReuseScope | undefined, tokensPerBlock: number): readonly BlockKey[] {
  return blockKeys(tokens, scope, tokensPerBlock).slice(0, Math.floor(tokens.length / tokensPerBlock));
}

/** What keeps the pages of texts with a common beginning together in a cluster: their first block. */
export function affinityOf(blocks: readonly BlockKey[]): string {
  return blocks.length === 0 ? 'none' : keyToHex(blocks[0]).slice(0, 32);
}
