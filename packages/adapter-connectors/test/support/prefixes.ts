import {
  affinityOf,
  type ConnectorGroup,
  type ConnectorLayout,
  PageNames,
  type PageStore,
  wholeBlockKeys,
} from '@bufferwise/adapter-kit';
import type { ReuseScope, TokenSeq } from '@bufferwise/cache-manager';
import { fullAttention, type Lifecycle, lifecycleId, slidingWindow, ssmState } from '@bufferwise/core-policy';
import fc from 'fast-check';

/** A group of one buffer of f32 in rows of 4 numbers. */
export function groupOf(id: number, lifecycle: Lifecycle, rows: number): ConnectorGroup {
  const pageBytes = rows * 16;
  const numbers = { type: 'f32', rowLength: 4 } as const;
  const buffers = [{ layerId: id, role: 'any', offset: 0, bytes: pageBytes, numbers }];
  return { groupId: lifecycleId(id), lifecycle, layerIds: [id], pageBytes, buffers };
}

/** Full attention, a window of 6 tokens with a sink block, optional and required state; 4 tokens a block. */
export const mixedLayout: ConnectorLayout = {
  modelFingerprint: 'a model',
  tokensPerBlock: 4,
  groups: [
    groupOf(0, fullAttention(), 3),
    groupOf(1, slidingWindow(6, { numSinkBlocks: 1 }), 2),
    groupOf(2, ssmState(), 5),
    groupOf(3, slidingWindow(9, { policy: 'optional' }), 1),
  ],
};

/** Any mix of groups that has something required, with groups of all kinds. */
export const anyLayout: fc.Arbitrary<ConnectorLayout> = fc
  .record({
    tokensPerBlock: fc.integer({ min: 1, max: 6 }),
    required: fc.subarray<Lifecycle>([fullAttention(), slidingWindow(7), slidingWindow(3, { numSinkBlocks: 2 }), ssmState()], {
      minLength: 1,
    }),
    optional: fc.subarray<Lifecycle>([
      slidingWindow(5, { policy: 'optional' }),
      ssmState('optional'),
      fullAttention({ sparsityGroup: 'a "b"', policy: 'optional' }),
    ]),
    rows: fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 7, maxLength: 7 }),
  })
  .map(({ tokensPerBlock, required, optional, rows }) => ({
    modelFingerprint: 'any model',
    tokensPerBlock,
    groups: [...required, ...optional].map((lifecycle, id) => groupOf(id, lifecycle, rows[id])),
  }));

/** A page that nothing else looks like: ordinary numbers. */
export function pageOf({ groupId, pageBytes }: ConnectorGroup, block: number): Uint8Array {
  const numbers = Float32Array.from({ length: pageBytes / 4 }, (_, i) => Math.sin((i + 1) * (groupId + 2) * (block + 3)));
  return new Uint8Array(numbers.buffer);
}

/** Stores the pages of some groups for all whole blocks of a text. */
export async function fill(
  store: PageStore,
  layout: ConnectorLayout,
  tokens: TokenSeq,
  scope?: ReuseScope,
  isThere: (group: ConnectorGroup, block: number) => boolean = () => true,
): Promise<void> {
  const blocks = wholeBlockKeys(tokens, scope, layout.tokensPerBlock);
  for (const group of layout.groups) {
    const names = new PageNames(layout, group);
    for (const [block, key] of blocks.entries())
      if (isThere(group, block)) await store.put([{ ...names.name(key, affinityOf(blocks)), bytes: pageOf(group, block) }]);
  }
}

/** What a store has of a text, group by group, block by block: null where it has nothing. */
export async function contents(store: PageStore, layout: ConnectorLayout, tokens: TokenSeq, scope?: ReuseScope) {
  const blocks = wholeBlockKeys(tokens, scope, layout.tokensPerBlock);
  return Promise.all(
    layout.groups.map(async (group) => {
      const names = new PageNames(layout, group);
      return Promise.all(blocks.map(async (key) => (await store.get([names.name(key, affinityOf(blocks))]))[0]));
    }),
  );
}
