import type { BufferConfig, BufferId, CacheConfig, Lifecycle, ReusePolicy } from '@bufferwise/core-policy';
import type { BufferAttr } from '../layout/buffer-attr.ts';
import { StorageLayout } from '../layout/storage-layout.ts';
import { formatCounted, formatExactBytes } from './units.ts';

/**
 * One thing in which two buffers differ, with the value of each. `policy` to `sparsity-group` part the groups; `slot-sizes` parts
 * pool groups, as do `policy` and `sparsity-group`; `expanded-size` and `coalescing-group` part buffers within a group.
 */
export type PairDifference =
  | { readonly what: 'policy'; readonly a: ReusePolicy; readonly b: ReusePolicy }
  | { readonly what: 'kind'; readonly a: Lifecycle['kind']; readonly b: Lifecycle['kind'] }
  /** Tokens; null without a window. Told of two attention buffers, as are sinks and sparsity. */
  | { readonly what: 'window'; readonly a: number | null; readonly b: number | null }
  /** Blocks, not tokens: sinks that make up equal blocks are no difference. */
  | { readonly what: 'sink-blocks'; readonly a: number; readonly b: number }
  | { readonly what: 'sparsity-group'; readonly a: string | null; readonly b: string | null }
  /** Bytes of a slot in each pool of the group, largest first. */
  | { readonly what: 'slot-sizes'; readonly a: readonly number[]; readonly b: readonly number[] }
  /** Bytes in a slot: page size × pages a block. */
  | { readonly what: 'expanded-size'; readonly a: number; readonly b: number }
  | { readonly what: 'coalescing-group'; readonly a: string | null; readonly b: string | null };

/** How close two buffers are, and what keeps them apart. */
export interface PairExplanation {
  readonly a: BufferId;
  readonly b: BufferId;
  /** They have one lifecycle: one page holds both. */
  readonly sameGroup: boolean;
  /** Their pages are given out from the same slots. */
  readonly samePoolGroup: boolean;
  /** They lie in the same memory. */
  readonly samePool: boolean;
  /** They lie side by side in the same slot. */
  readonly sameCoalescedBuffer: boolean;
  /** Empty exactly when they share a slot. */
  readonly differences: readonly PairDifference[];
}

/**
 * Tells why two buffers are, or are not, together.
 *
 * @param layout of the same config, when the caller has one already
 * @throws {UnknownBufferError} when the config has no such buffer, or its size is 0
 */
export function explainPair(
  config: CacheConfig,
  a: BufferId,
  b: BufferId,
  layout: StorageLayout = StorageLayout.fromConfig(config),
): PairExplanation {
  const [first, second] = [a, b].map(({ layerId, role }) => ({ layerId, role }));
  const attrs: Pair<BufferAttr> = [layout.bufferAttr(a.layerId, a.role), layout.bufferAttr(b.layerId, b.role)];
  const samePoolGroup = attrs[0].poolGroup === attrs[1].poolGroup;
  return {
    a: first,
    b: second,
    sameGroup: attrs[0].lifecycleId === attrs[1].lifecycleId,
    samePoolGroup,
    samePool: samePoolGroup && attrs[0].pool === attrs[1].pool,
    sameCoalescedBuffer: layout.coalescedBuffer(a.layerId, a.role) === layout.coalescedBuffer(b.layerId, b.role),
    differences: [
      ...lifecycleDifferences(layout.lifecycles.get(attrs[0].lifecycleId), layout.lifecycles.get(attrs[1].lifecycleId)),
      ...storageDifferences(layout, attrs, [configOf(config, a), configOf(config, b)]),
    ],
  };
}

/**
 * An explanation of a pair in one sentence, for messages.
 *
 * @example formatPair(pair)
 * // 'Buffer "key" of layer 0 and buffer "replay_x" of layer 0 are in different groups and pools: policy required against private.'
 */
export function formatPair(pair: PairExplanation): string {
  const { a, b, sameCoalescedBuffer, differences } = pair;
  const both = `Buffer ${JSON.stringify(a.role)} of layer ${a.layerId} and buffer ${JSON.stringify(b.role)} of layer ${b.layerId}`;
  if (sameCoalescedBuffer) return `${both} share a slot.`;
  return `${both} are in ${placeWords(pair)}: ${differences.map(differenceWords).join('; ')}.`;
}

function placeWords({ sameGroup, samePool }: PairExplanation): string {
  if (sameGroup) return 'one group but different pools';
  return samePool ? 'different groups of one pool' : 'different groups and pools';
}

type Pair<T> = readonly [T, T];

function lifecycleDifferences(a: Lifecycle, b: Lifecycle): PairDifference[] {
  const differences: PairDifference[] = [];
  if (a.policy !== b.policy) differences.push({ what: 'policy', a: a.policy, b: b.policy });
  if (a.kind !== b.kind) differences.push({ what: 'kind', a: a.kind, b: b.kind });
  if (a.kind === 'ssm' || b.kind === 'ssm') return differences;
  if (a.windowSize !== b.windowSize) differences.push({ what: 'window', a: a.windowSize, b: b.windowSize });
  if (a.numSinkBlocks !== b.numSinkBlocks) differences.push({ what: 'sink-blocks', a: a.numSinkBlocks, b: b.numSinkBlocks });
  if (a.sparsityGroup !== b.sparsityGroup) differences.push({ what: 'sparsity-group', a: a.sparsityGroup, b: b.sparsityGroup });
  return differences;
}

function storageDifferences(layout: StorageLayout, [a, b]: Pair<BufferAttr>, configs: Pair<BufferConfig>): PairDifference[] {
  const differences: PairDifference[] = [];
  const [slotsA, slotsB] = [a, b].map(({ poolGroup }) => layout.poolGroups[poolGroup].pools.map(({ slotBytes }) => slotBytes));
  if (slotsA.join() !== slotsB.join()) differences.push({ what: 'slot-sizes', a: slotsA, b: slotsB });
  if (a.size !== b.size) differences.push({ what: 'expanded-size', a: a.size, b: b.size });
  const [labelA, labelB] = configs.map(({ coalescingGroup }) => coalescingGroup ?? null);
  if (labelA !== labelB) differences.push({ what: 'coalescing-group', a: labelA, b: labelB });
  return differences;
}

function configOf(config: CacheConfig, { layerId, role }: BufferId): BufferConfig {
  const layer = config.layers.find((each) => each.layerId === layerId);
  return layer?.buffers.find((buffer) => buffer.role === role) as BufferConfig;
}

function differenceWords(difference: PairDifference): string {
  const against = (what: string, a: string, b: string) => `${what} ${a} against ${b}`;
  switch (difference.what) {
    case 'policy':
      return against('policy', difference.a, difference.b);
    case 'kind':
      return against('kind', difference.a, difference.b);
    case 'window':
      return against('window', windowWords(difference.a), windowWords(difference.b));
    case 'sink-blocks':
      return against('sinks', formatCounted(difference.a, 'block'), formatCounted(difference.b, 'block'));
    case 'sparsity-group':
      return against('sparsity group', labelWords(difference.a), labelWords(difference.b));
    case 'slot-sizes':
      return against('slots', difference.a.map(formatExactBytes).join(' + '), difference.b.map(formatExactBytes).join(' + '));
    case 'expanded-size':
      return against('size in a slot', formatExactBytes(difference.a), formatExactBytes(difference.b));
    case 'coalescing-group':
      return against('coalescing group', labelWords(difference.a), labelWords(difference.b));
  }
}

function windowWords(tokens: number | null): string {
  return tokens === null ? 'none' : formatCounted(tokens, 'token');
}

function labelWords(label: string | null): string {
  return label === null ? 'none' : JSON.stringify(label);
}
