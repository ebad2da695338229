import type { ManagerSnapshot } from '@bufferwise/cache-manager';
import type { TreeFrame } from '../protocol/tree-frame.ts';

/** Writes the published blocks of a snapshot down in columns, with what they say. */
export function takeTreeFrame(snapshot: ManagerSnapshot, decode: (tokens: readonly number[]) => string): TreeFrame {
  const blocks = snapshot.tree.flatMap((scope) => scope.blocks);
  const positions = new Map(blocks.map(({ id }, position) => [id, position]));
  const groupOfPage = new Map(snapshot.pages.map(({ id, groupId }) => [id, groupId]));
  return {
    numBlocks: blocks.length,
    block: Int32Array.from(blocks, ({ id }) => id),
    parent: Int32Array.from(blocks, ({ parent }) => (parent === null ? -1 : (positions.get(parent) ?? -1))),
    ordinal: Uint32Array.from(blocks, ({ ordinal }) => ordinal),
    numTokens: Uint16Array.from(blocks, ({ numTokens }) => numTokens),
    groups: Uint32Array.from(blocks, ({ pages }) => pages.reduce((bits, page) => bits | (1 << (groupOfPage.get(page) ?? 31)), 0)),
    texts: blocks.map(({ tokens }) => decode(tokens as readonly number[])),
    omitted: snapshot.omitted.blocks,
  };
}
