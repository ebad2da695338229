import { AdapterError } from '@bufferwise/adapter-kit';
import type { KvCacheManager, PoolMemory } from '@bufferwise/cache-manager';
import type { LayerGroupId } from '@bufferwise/core-policy';
import { BAD_PAGE_INDEX, type PageSource } from '@bufferwise/scratch-allocator';

/** The block indices of a batch in one layer group. */
export interface BlockIndexRows {
  /** `[numRequests, maxBlocks] i32`: slot id of each block, -1 where there is no page and behind a request's last block. */
  readonly indices: Int32Array;
  readonly maxBlocks: number;
}

export interface BlockIndexOptions {
  /** Columns. Default: the blocks of the longest request. */
  readonly maxBlocks?: number;
  /** At least `requests.length × maxBlocks` entries, used again. Default: a new array. */
  readonly out?: Int32Array;
}

/** Where a layer's buffer lies. Slot s holds its page at byte `offset + s × stride` of the pool. */
export interface BufferPlace {
  /** The pool. Another one after a tier was resized or a device lost: ask in every step. */
  readonly memory: PoolMemory;
  /** Bytes from the start of a slot, the same in all slots. */
  readonly offset: number;
  /** Bytes from one slot to the next. */
  readonly stride: number;
  /** Bytes of one page. */
  readonly pageBytes: number;
  /** Pages of this size in a slot: `stride / pageBytes`. A kernel that counts pages from `offset` on reads slot s at `s × scale`. */
  readonly scale: number;
}

/**
 * A manager as engines see it that know layers and no buffers. It looks up and holds nothing: what it answers is what the manager says
 * at that moment.
 *
 * `requests` are `KvCache`s, or `kv.beam(i)` of one with beams.
 */
export class LegacyCacheView {
  /** The layers of each group, in config order. Index = group id. */
  readonly layerGrouping: readonly (readonly number[])[];
  readonly #manager: KvCacheManager;

  /** @throws {AmbiguousLayerError} when any layer's buffers are in several groups: no answer would be right for it */
  constructor(manager: KvCacheManager) {
    this.layerGrouping = manager.layerGrouping;
    this.#manager = manager;
  }

  /** Tokens of a block. */
  get tokensPerBlock(): number {
    return this.#manager.layout.tokensPerBlock;
  }

  /** The one group of a layer. @throws {UnknownBufferError} when the config has no buffer of that layer */
  groupOfLayer(layerId: number): LayerGroupId {
    return this.#manager.getLayerGroupId(layerId);
  }

  /**
   * The blocks of a batch in one group of attention layers: one table for all layers and buffers of the group.
   *
   * @throws {StateError} `not-attention`, `unknown-group`; {AdapterError} `step-refused` when a request has more blocks, `out` has no
   *   room, or a request has scratch in the group, where no index is right for all layers. Nothing is written then
   */
  blockIndices(
    requests: readonly PageSource[],
    groupId: LayerGroupId,
    { maxBlocks, out }: BlockIndexOptions = {},
  ): BlockIndexRows {
    const rows = requests.map((request) => request.basePageIndices(groupId));
    const columns = maxBlocks ?? rows.reduce((most, { length }) => Math.max(most, length), 0);
    rows.forEach(({ length }, i) => {
      if (length > columns)
        throw refused(`request ${i} has ${length} blocks, and rows have room for ${columns}; raise \`maxBlocks\``);
      if (requests[i].scratch(groupId) !== null)
        throw refused(
          `request ${i} has scratch blocks in group ${groupId}, which lie elsewhere for each layer; give the step to \`LegacyAttentionConsumer\`, or leave out \`swaScratchReuse\``,
        );
    });
    const size = rows.length * columns;
    if (out !== undefined && out.length < size)
      throw refused(`the table has ${size} entries, and \`out\` has room for ${out.length}`);
    const indices = out === undefined ? new Int32Array(size) : out.subarray(0, size);
    indices.fill(BAD_PAGE_INDEX);
    rows.forEach((row, i) => {
      indices.set(row, i * columns);
    });
    return { indices, maxBlocks: columns };
  }

  /**
   * The recurrent state of a batch in one group: one index a request, for state, convolution tail and replay ring of all its layers.
   *
   * @returns `[numRequests] i32` of slot ids, -1 for a request that is not active
   * @throws {StateError} `not-state`, `unknown-group`
   */
  stateIndices(requests: readonly PageSource[], groupId: LayerGroupId): Int32Array {
    return Int32Array.from(requests, (request) => request.ssmBlockBaseIndex(groupId));
  }

  /**
   * Where the pages of a layer's buffer lie.
   *
   * @throws {UnknownBufferError} when the config has no such buffer; {StateError} `device-lost`; {AdapterError} `layout-refused` for a
   *   buffer of several pages a block, which a slot does not name
   */
  bufferPlace(layerId: number, role: string): BufferPlace {
    const { layout } = this.#manager;
    const { poolGroup, pool, offset, expansion, size } = layout.bufferAttr(layerId, role);
    if (expansion > 1) {
      const message = `buffer ${role} of layer ${layerId} has ${expansion} pages a block, and a slot names one; leave out \`tokensPerBlockOverride\``;
      throw new AdapterError('layout-refused', message);
    }
    const stride = layout.poolGroups[poolGroup].pools[pool].slotBytes;
    return { memory: this.#manager.poolMemory(layerId, role), offset, stride, pageBytes: size, scale: stride / size };
  }
}

function refused(why: string): AdapterError {
  return new AdapterError('step-refused', `no block indices for this batch: ${why}`);
}
