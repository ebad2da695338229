import {
  type BufferConfig,
  type BufferId,
  type CacheConfig,
  type Lifecycle,
  type LifecycleId,
  LifecycleRegistry,
  UnknownBufferError,
  UnknownLifecycleError,
} from '@bufferwise/core-policy';
import { PageIndexConverter, type PageIndexMode } from '../page-index-converter.ts';
import { ceilMul, type Rational } from '../rational.ts';
import { buffersPerLayer, scratchUtilizationOf } from '../scratch/scratch-utilization.ts';
import { type AggregatedPageDesc, aggregatePages } from './aggregated-pages.ts';
import type { BufferAttr } from './buffer-attr.ts';
import { type CoalescedBuffer, coalesce, type SizedBuffer } from './coalescing.ts';
import { expansionOf } from './expansion.ts';
import { type ColdPoolGroupDesc, groupColdPools, groupPools, type PoolGroupDesc } from './pool-group.ts';

/** What the layout knows of one buffer. */
interface PlacedEntry {
  bufferId: BufferId;
  attr: BufferAttr;
  coalesced: CoalescedBuffer;
  converter: PageIndexConverter;
}

/**
 * Where every byte of a config lies: which buffers share a slot, which lifecycles share pools, where each buffer begins.
 * Says nothing of how many slots there are; see `planSlots`. Immutable; lookups are O(1).
 */
export class StorageLayout {
  readonly lifecycles: LifecycleRegistry;
  /** Tokens in a block. */
  readonly tokensPerBlock: number;
  /** Pool groups of the device, numbered in the order of their first lifecycle. */
  readonly poolGroups: readonly PoolGroupDesc[];
  /** Pool groups of each colder tier, numbered in the order of their first lifecycle. */
  readonly coldPoolGroups: readonly ColdPoolGroupDesc[];

  readonly #coalesced: readonly (readonly CoalescedBuffer[])[];
  readonly #utilization: readonly Rational[];
  readonly #poolGroupOf: readonly number[];
  readonly #coldPoolGroupOf: readonly number[];
  readonly #buffers: ReadonlyMap<number, ReadonlyMap<string, PlacedEntry>>;

  /**
   * Lays out a config; cost is linear in its buffers.
   *
   * @param registry of the same config, when the caller has one already
   */
  static fromConfig(
    config: Pick<CacheConfig, 'tokensPerBlock' | 'layers'>,
    registry: LifecycleRegistry = LifecycleRegistry.fromConfig(config),
  ): StorageLayout {
    return new StorageLayout(config, registry);
  }

  private constructor(config: Pick<CacheConfig, 'tokensPerBlock' | 'layers'>, registry: LifecycleRegistry) {
    const expansions = new Map<BufferId, number>();
    const lifecycles = lifecyclesOf(registry);
    const buffersById = configsById(config);
    const coalesced = registry.bufferGrouping.map((ids) =>
      coalesce(
        ids.map((id): SizedBuffer => {
          const buffer = buffersById(id);
          const expansion = expansionOf(buffer, config.tokensPerBlock);
          expansions.set(id, expansion);
          return { id, size: buffer.size * expansion, coalescingGroup: buffer.coalescingGroup };
        }),
      ),
    );
    this.lifecycles = registry;
    this.tokensPerBlock = config.tokensPerBlock;
    this.poolGroups = Object.freeze(groupPools(lifecycles, coalesced));
    this.#poolGroupOf = groupIndices(this.poolGroups, registry.size);
    const pageBytes = this.#poolGroupOf.map((group) => this.poolGroups[group].slotBytes);
    this.coldPoolGroups = Object.freeze(groupColdPools(lifecycles, pageBytes));
    this.#coldPoolGroupOf = groupIndices(this.coldPoolGroups, registry.size);
    this.#coalesced = coalesced;
    this.#utilization = coalesced.map((buffers) => Object.freeze(scratchUtilizationOf(buffers)));
    this.#buffers = place(coalesced, this.#poolGroupOf, expansions);
  }

  /** Index into `poolGroups`. @throws {UnknownLifecycleError} when there is no such lifecycle */
  poolGroupOf(id: LifecycleId): number {
    return this.#byLifecycle(this.#poolGroupOf, id);
  }

  /** Index into `coldPoolGroups`. @throws {UnknownLifecycleError} when there is no such lifecycle */
  coldPoolGroupOf(id: LifecycleId): number {
    return this.#byLifecycle(this.#coldPoolGroupOf, id);
  }

  /** Bytes of one page over all its buffers. @throws {UnknownLifecycleError} when there is no such lifecycle */
  pageBytes(id: LifecycleId): number {
    return this.poolGroups[this.poolGroupOf(id)].slotBytes;
  }

  /** Coalesced buffers of a lifecycle; index = pool of its pool group. @throws {UnknownLifecycleError} when there is no such lifecycle */
  coalescedBuffers(id: LifecycleId): readonly CoalescedBuffer[] {
    return this.#byLifecycle(this.#coalesced, id);
  }

  /** @throws {UnknownBufferError} when the config has no such buffer, or its size is 0 */
  bufferAttr(layerId: number, role: string): BufferAttr {
    return this.#entry(layerId, role).attr;
  }

  /** The buffers that share a slot with this one, itself included. @throws {UnknownBufferError} as `bufferAttr` */
  coalescedBuffer(layerId: number, role: string): CoalescedBuffer {
    return this.#entry(layerId, role).coalesced;
  }

  /** Always the same object for the same buffer. @throws {UnknownBufferError} as `bufferAttr` */
  pageIndexConverter(layerId: number, role: string): PageIndexConverter {
    return this.#entry(layerId, role).converter;
  }

  /** Bytes from one page index of the buffer to the next: the buffer's configured size. @throws {UnknownBufferError} as `bufferAttr` */
  pageStride(layerId: number, role: string): number {
    const { size, expansion } = this.bufferAttr(layerId, role);
    return size / expansion;
  }

  /**
   * All page indices of a buffer are below this, in a pool of `numSlots` slots. `shared` indices count from the buffer's offset
   * in the pool, so that fewer remain up to its end.
   *
   * @throws {UnknownBufferError} as `bufferAttr`
   */
  pageIndexBound(layerId: number, role: string, numSlots: number, indexMode: PageIndexMode = 'shared'): number {
    const { scale, expansion, layerOffset } = this.pageIndexConverter(layerId, role);
    return Math.max(0, scale * numSlots - (indexMode === 'shared' ? layerOffset : 0)) * expansion;
  }

  /**
   * The fewest runs of bytes that hold the given buffers, for transfers. Runs come lifecycle by lifecycle, pool by pool, in
   * order of address; a buffer named twice counts once.
   *
   * @throws {UnknownBufferError} as `bufferAttr`
   */
  aggregatedPages(bufferIds: readonly BufferId[]): AggregatedPageDesc[] {
    return aggregatePages(
      bufferIds.map(({ layerId, role }) => {
        const { bufferId, attr } = this.#entry(layerId, role);
        return { bufferId, attr, slotBytes: this.poolGroups[attr.poolGroup].pools[attr.pool].slotBytes };
      }),
    );
  }

  /** The share of a slot that a scratch block needs, exact. @throws {UnknownLifecycleError} when there is no such lifecycle */
  scratchUtilization(id: LifecycleId): Rational {
    return this.#byLifecycle(this.#utilization, id);
  }

  /**
   * Slots that so many scratch blocks of one request share: `ceil(scratchBlocks × scratchUtilization)`.
   *
   * @throws {UnknownLifecycleError} when there is no such lifecycle
   */
  scratchSlots(id: LifecycleId, scratchBlocks: number): number {
    return ceilMul(scratchBlocks, this.scratchUtilization(id));
  }

  #byLifecycle<T>(column: readonly T[], id: LifecycleId): T {
    const value = column[id];
    if (value === undefined) throw new UnknownLifecycleError(id, column.length);
    return value;
  }

  #entry(layerId: number, role: string): PlacedEntry {
    const roles = this.#buffers.get(layerId);
    const entry = roles?.get(role);
    if (entry === undefined) throw new UnknownBufferError(layerId, role, [...(roles?.keys() ?? [])]);
    return entry;
  }
}

/** Places every member of every coalesced buffer, by layer and role. */
function place(
  coalesced: readonly (readonly CoalescedBuffer[])[],
  poolGroupOf: readonly number[],
  expansions: ReadonlyMap<BufferId, number>,
): Map<number, Map<string, PlacedEntry>> {
  const entries = new Map<number, Map<string, PlacedEntry>>();
  coalesced.forEach((pools, lifecycleId) => {
    pools.forEach((buffer, pool) => {
      const inLayer = buffersPerLayer(buffer.bufferIds);
      const placedInLayer = new Map<number, number>();
      buffer.bufferIds.forEach((bufferId, indexInSlot) => {
        const { layerId, role } = bufferId;
        const scratchPagesPerBlock = inLayer.get(layerId) as number;
        const rankInLayer = placedInLayer.get(layerId) ?? 0;
        const expansion = expansions.get(bufferId) as number;
        const attr: BufferAttr = Object.freeze({
          lifecycleId: lifecycleId as LifecycleId,
          poolGroup: poolGroupOf[lifecycleId],
          pool,
          offset: indexInSlot * buffer.singleBufferSize,
          size: buffer.singleBufferSize,
          expansion,
          indexInSlot,
          scratchPagesPerBlock,
        });
        const scale = buffer.bufferIds.length;
        const converter = new PageIndexConverter({
          scale,
          expansion,
          layerOffset: indexInSlot,
          scratchPagesPerBlock,
          rankInLayer,
        });
        placedInLayer.set(layerId, rankInLayer + 1);
        const roles = entries.get(layerId) ?? new Map<string, PlacedEntry>();
        roles.set(role, { bufferId, attr, coalesced: buffer, converter });
        entries.set(layerId, roles);
      });
    });
  });
  return entries;
}

/** Index = lifecycle id; value = index of the group that has it. */
function groupIndices(groups: readonly { lifecycleIds: readonly LifecycleId[] }[], lifecycles: number): number[] {
  const indices = new Array<number>(lifecycles);
  groups.forEach(({ lifecycleIds }, group) => {
    for (const id of lifecycleIds) indices[id] = group;
  });
  return indices;
}

function lifecyclesOf(registry: LifecycleRegistry): Lifecycle[] {
  return Array.from({ length: registry.size }, (_, id) => registry.get(id as LifecycleId));
}

/** Finds the config of a buffer that the registry named. */
function configsById(config: Pick<CacheConfig, 'layers'>): (id: BufferId) => BufferConfig {
  const byLayer = new Map(
    config.layers.map((layer) => [layer.layerId, new Map(layer.buffers.map((buffer) => [buffer.role, buffer]))]),
  );
  return ({ layerId, role }) => byLayer.get(layerId)?.get(role) as BufferConfig;
}
