import { divUp } from '../block-range.ts';
import type { BufferConfig, BufferId } from '../config/buffer-config.ts';
import type { CacheConfig } from '../config/cache-config.ts';
import type { LayerConfig } from '../config/layer-config.ts';
import { UnknownLifecycleError } from '../errors/unknown-lifecycle-error.ts';
import { BufferGrouping } from '../grouping/buffer-grouping.ts';
import { LayerGrouping } from '../grouping/layer-grouping.ts';
import { resolveReusePolicy } from '../reuse/reuse-policy.ts';
import {
  fullAttention,
  type LayerGroupId,
  type Lifecycle,
  type LifecycleId,
  lifecycleId,
  lifecycleKey,
  slidingWindow,
  ssmState,
} from './lifecycle.ts';

/**
 * The lifecycles of a config, each once, and the buffers of each.
 *
 * An id is given when the first buffer with its meaning is met, walking layers and their buffers in config order. A layer
 * without buffers gets none. Immutable.
 */
export class LifecycleRegistry {
  /** Number of lifecycles; ids run from 0 up to, not including, this. */
  readonly size: number;
  /** What each id means. Index = lifecycle id. */
  readonly lifecycles: readonly Lifecycle[];
  /** The buffers of each group, in config order. Index = group id. */
  readonly bufferGrouping: readonly (readonly BufferId[])[];

  readonly #buffers = new BufferGrouping();
  readonly #layers: LayerGrouping;

  /** Finds the lifecycles of a config; cost is linear in its buffers. */
  static fromConfig(config: Pick<CacheConfig, 'tokensPerBlock' | 'layers'>): LifecycleRegistry {
    return new LifecycleRegistry(config);
  }

  private constructor(config: Pick<CacheConfig, 'tokensPerBlock' | 'layers'>) {
    const lifecycles: Lifecycle[] = [];
    const idsByMeaning = new Map<string, LifecycleId>();
    for (const layer of config.layers) {
      for (const buffer of layer.buffers) {
        if (buffer.size === 0) continue;
        const lifecycle = lifecycleOf(layer, buffer, config.tokensPerBlock);
        const meaning = lifecycleKey(lifecycle);
        let id = idsByMeaning.get(meaning);
        if (id === undefined) {
          id = lifecycleId(lifecycles.length);
          idsByMeaning.set(meaning, id);
          lifecycles.push(lifecycle);
        }
        this.#buffers.add(layer.layerId, buffer.role, id);
      }
    }
    this.size = lifecycles.length;
    this.lifecycles = Object.freeze(lifecycles);
    this.bufferGrouping = this.#buffers.all();
    this.#layers = new LayerGrouping(this.bufferGrouping);
    Object.freeze(this);
  }

  /**
   * The meaning of an id. O(1).
   * @throws {UnknownLifecycleError} when the id is not one of this registry's
   */
  get(id: LifecycleId): Lifecycle {
    const lifecycle = this.lifecycles[id];
    if (lifecycle === undefined) throw new UnknownLifecycleError(id, this.size);
    return lifecycle;
  }

  /**
   * The group of one buffer. O(1).
   * @throws {UnknownBufferError} when the config has no such buffer, or its size is 0
   */
  getBufferGroupId(layerId: number, role: string): LayerGroupId {
    return this.#buffers.groupOf(layerId, role);
  }

  /**
   * The group that all buffers of a layer share. O(1).
   * @deprecated A layer may be in several groups: ask `getBufferGroupId(layerId, role)`.
   * @throws {AmbiguousLayerError} when the layer's buffers are in several groups
   * @throws {UnknownBufferError} when the config has no buffer of that layer
   */
  getLayerGroupId(layerId: number): LayerGroupId {
    return this.#layers.groupOf(layerId);
  }

  /**
   * The layers of each group, in config order. Index = group id.
   * @deprecated A layer may be in several groups: use `bufferGrouping`.
   * @throws {AmbiguousLayerError} when any layer's buffers are in several groups
   */
  get layerGrouping(): readonly (readonly number[])[] {
    return this.#layers.all();
  }
}

/** What a buffer's pages are worth keeping for. Takes a buffer, as a layer alone has no lifecycle. */
function lifecycleOf(layer: LayerConfig, buffer: BufferConfig, tokensPerBlock: number): Lifecycle {
  const policy = resolveReusePolicy(buffer.reusePolicy, layer.reusePolicy);
  if (layer.type === 'ssm') return ssmState(policy);
  const { slidingWindowSize, numSinkTokens = 0, sparsityGroup } = layer;
  if (slidingWindowSize === undefined) return fullAttention({ sparsityGroup, policy });
  return slidingWindow(slidingWindowSize, { numSinkBlocks: divUp(numSinkTokens, tokensPerBlock), sparsityGroup, policy });
}
