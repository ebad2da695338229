import { type CacheConfig, type Lifecycle, LifecycleRegistry, lifecycleKey } from '@bufferwise/core-policy';
import { TransferError } from '../errors.ts';

/** One buffer of a page, as both sides must have it. */
export interface TransferBuffer {
  readonly layerId: number;
  readonly role: string;
  /** Bytes for one block. */
  readonly size: number;
  /** Pages that the block is cut into. */
  readonly expansion: number;
}

/** Buffers whose pages travel together. */
export interface TransferGroup {
  readonly lifecycle: Lifecycle;
  /** By layer, then role: the order of their bytes in a page that travels, wherever they lie on either side. */
  readonly buffers: readonly TransferBuffer[];
  /** Bytes of all buffers for one block. */
  readonly pageBytes: number;
}

/** What travels of a request, without slots, pools or the ids of either side. Groups are numbered by their lifecycle's meaning. */
export interface TransferLayout {
  readonly tokensPerBlock: number;
  readonly groups: readonly TransferGroup[];
}

/** The layout of a config; the same for two configs that differ only in the order of layers and buffers, in tiers or in coalescing. */
export function transferLayout(config: CacheConfig): TransferLayout {
  const registry = LifecycleRegistry.fromConfig(config);
  const byGroup = new Map<string, { lifecycle: Lifecycle; buffers: TransferBuffer[] }>();
  for (const { layerId, buffers } of config.layers) {
    for (const { role, size, tokensPerBlockOverride } of buffers) {
      const lifecycle = registry.get(registry.getBufferGroupId(layerId, role));
      const key = lifecycleKey(lifecycle);
      if (!byGroup.has(key)) byGroup.set(key, { lifecycle, buffers: [] });
      const expansion = config.tokensPerBlock / (tokensPerBlockOverride ?? config.tokensPerBlock);
      byGroup.get(key)?.buffers.push({ layerId, role, size: size * expansion, expansion });
    }
  }
  const groups = [...byGroup]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { lifecycle, buffers }]) => ({
      lifecycle,
      buffers: buffers.sort((a, b) => a.layerId - b.layerId || (a.role < b.role ? -1 : 1)),
      pageBytes: buffers.reduce((bytes, { size }) => bytes + size, 0),
    }));
  return { tokensPerBlock: config.tokensPerBlock, groups };
}

/** What the other side says of its layout: all of it, so that a refusal can name the buffer. */
export interface LayoutDescription {
  readonly tokensPerBlock: number;
  /** `[lifecycle, layerId, role, size, expansion]` */
  readonly buffers: readonly (readonly [string, number, string, number, number])[];
}

export function describeLayout({ tokensPerBlock, groups }: TransferLayout): LayoutDescription {
  return {
    tokensPerBlock,
    buffers: groups.flatMap(({ lifecycle, buffers }) =>
      buffers.map(({ layerId, role, size, expansion }) => [lifecycleKey(lifecycle), layerId, role, size, expansion] as const),
    ),
  };
}

/** @throws {TransferError} `layout-mismatch` naming the first buffer that differs: bytes must never land where others belong */
export function checkSameLayout(own: TransferLayout, theirs: LayoutDescription): void {
  if (own.tokensPerBlock !== theirs.tokensPerBlock)
    throw mismatch(`blocks have ${own.tokensPerBlock} tokens here and ${theirs.tokensPerBlock} there`);
  const keyed = (layout: LayoutDescription) =>
    new Map(layout.buffers.map((buffer) => [JSON.stringify([buffer[1], buffer[2]]), buffer]));
  const here = keyed(describeLayout(own));
  const there = keyed(theirs);
  for (const key of new Set([...here.keys(), ...there.keys()])) {
    const mine = here.get(key);
    const other = there.get(key);
    const [, layerId, role] = (mine ?? other) as LayoutDescription['buffers'][number];
    const name = `layer ${layerId}, role ${JSON.stringify(role)}`;
    if (mine === undefined || other === undefined) throw mismatch(`${name} is only ${mine ? 'here' : 'there'}`);
    if (mine[3] !== other[3]) throw mismatch(`${name} has ${mine[3]} bytes a block here and ${other[3]} there`);
    if (mine[4] !== other[4]) throw mismatch(`${name} is ${mine[4]} pages a block here and ${other[4]} there`);
    if (mine[0] !== other[0]) throw mismatch(`${name} is "${mine[0]}" here and "${other[0]}" there`);
  }
}

function mismatch(what: string): TransferError {
  return new TransferError('layout-mismatch', `the two sides keep different pages: ${what}; give both the same layers and sizes`);
}
