import { AdapterError, type ConsumerAdapter } from '@bufferwise/adapter-kit';
import type { LayerGroupId } from '@bufferwise/core-policy';
import type { Binding, KvPages, PagedAttention, PagePlaces } from '@bufferwise/gpu-kernels';
import type { StorageLayout } from '@bufferwise/scratch-allocator';
import { type AttentionLayer, type AttentionRole, SCALES_OF, tokensPerPage } from './attention-layer.ts';

/** One buffer of a layer in a layout. */
export interface BoundBuffer {
  readonly layerId: number;
  readonly role: AttentionRole;
  /** Position among the buffers of the consumer. */
  readonly index: number;
  /** Position among `BoundLayers.groupIds`. */
  readonly group: number;
  /** Position among `BoundLayers.tables`. */
  readonly table: number;
  /** Pages of a block. */
  readonly expansion: number;
  /** Where its pages are: used again in every step, which first puts pool and table in. */
  readonly places: PagePlaces;
}

/** Keys or values of a layer, and what lies beside them. */
export interface BoundNumbers extends BoundBuffer {
  readonly places: KvPages;
  readonly scales: BoundBuffer | undefined;
}

export interface BoundLayer {
  readonly layer: AttentionLayer;
  readonly attention: PagedAttention;
  readonly keys: BoundNumbers;
  readonly values: BoundNumbers;
}

/** Where the buffers of all layers lie in one layout. Made by `bind`. */
export interface BoundLayers {
  readonly layout: StorageLayout;
  readonly byId: ReadonlyMap<number, BoundLayer>;
  readonly buffers: readonly BoundBuffer[];
  /** A buffer for each table that differs from the others. Buffers whose pages have equal indices read one: numbers and their scales do. */
  readonly tables: readonly BoundBuffer[];
  /** Groups that the buffers are in. */
  readonly groupIds: readonly LayerGroupId[];
}

/** Stands in `places` until the first step. */
const NOTHING_YET = undefined as unknown as Binding;

/**
 * @param consumer whose buffers have been found in the layout, in the sizes it wants
 * @throws {AdapterError} `layout-refused` when pages, windows or policies are others than those of the layers
 */
export function bindLayers(
  { name }: Pick<ConsumerAdapter, 'name'>,
  layout: StorageLayout,
  layers: readonly { layer: AttentionLayer; attention: PagedAttention }[],
  tokensPerBlock: number,
): BoundLayers {
  const buffers: BoundBuffer[] = [];
  const tables: BoundBuffer[] = [];
  const groupIds: LayerGroupId[] = [];
  const tableOf = new Map<string, number>();

  const bind = (layer: AttentionLayer, role: AttentionRole): BoundBuffer => {
    const { layerId } = layer;
    requireSameMeaning(name, layout, layer, role, tokensPerBlock);
    const { lifecycleId } = layout.bufferAttr(layerId, role);
    const { scale, layerOffset, expansion, rankInLayer, scratchPagesPerBlock } = layout.pageIndexConverter(layerId, role);
    const indices = [lifecycleId, scale, layerOffset, expansion, rankInLayer, scratchPagesPerBlock].join(' ');
    const table = tableOf.get(indices) ?? tables.length;
    const group = groupIds.includes(lifecycleId) ? groupIds.indexOf(lifecycleId) : groupIds.push(lifecycleId) - 1;
    const places: PagePlaces = {
      pool: NOTHING_YET,
      table: NOTHING_YET,
      tableStride: 0,
      tokensPerPage: tokensPerPage(layer, role, tokensPerBlock),
      pageStrideWords: layout.pageStride(layerId, role) / 4,
    };
    const buffer = { layerId, role, index: buffers.length, group, table, expansion, places };
    buffers.push(buffer);
    if (table === tables.length) tables.push(buffer);
    tableOf.set(indices, table);
    return buffer;
  };

  const bindNumbers = (layer: AttentionLayer, role: 'key' | 'value'): BoundNumbers => {
    const numbers = bind(layer, role);
    if (layer.storage !== 'int8') return { ...numbers, scales: undefined };
    const scales = bind(layer, SCALES_OF[role]);
    if (scales.group !== numbers.group) {
      throw refused(
        name,
        layer,
        role,
        'is in another group than its scales, and means nothing without them; give both one policy',
      );
    }
    return { ...numbers, scales, places: Object.assign(numbers.places, { scales: scales.places }) };
  };

  const byId = new Map<number, BoundLayer>();
  for (const { layer, attention } of layers) {
    byId.set(layer.layerId, { layer, attention, keys: bindNumbers(layer, 'key'), values: bindNumbers(layer, 'value') });
  }
  return { layout, byId, buffers, tables, groupIds };
}

/** Sizes alone do not tell how many tokens a page is for, nor how long it stays. */
function requireSameMeaning(
  name: string,
  layout: StorageLayout,
  layer: AttentionLayer,
  role: AttentionRole,
  tokensPerBlock: number,
): void {
  const { lifecycleId, expansion } = layout.bufferAttr(layer.layerId, role);
  const tokens = tokensPerPage(layer, role, tokensPerBlock);
  if (layout.tokensPerBlock !== expansion * tokens) {
    const pages = `${expansion} pages in a block of ${layout.tokensPerBlock} tokens`;
    throw refused(
      name,
      layer,
      role,
      `has ${pages}, and this consumer has pages of ${tokens}; put its \`layers\` into the config`,
    );
  }
  const lifecycle = layout.lifecycles.get(lifecycleId);
  if (lifecycle.kind !== 'attention') throw refused(name, layer, role, 'is recurrent state; give the layer another id');
  const { windowSize, numSinkBlocks } = lifecycle;
  if (windowSize === null) return;
  const { slidingWindowSize = Number.POSITIVE_INFINITY, numSinkTokens = 0 } = layer;
  if (windowSize >= slidingWindowSize && numSinkBlocks * layout.tokensPerBlock >= numSinkTokens) return;
  const kept = `keeps the last ${windowSize} tokens and ${numSinkBlocks} first blocks`;
  throw refused(name, layer, role, `${kept}, which is less than the layer reads; put its \`layers\` into the config`);
}

function refused(name: string, { layerId }: AttentionLayer, role: AttentionRole, why: string): AdapterError {
  return new AdapterError('layout-refused', `${name} cannot read this layout: buffer ${role} of layer ${layerId} ${why}`);
}
