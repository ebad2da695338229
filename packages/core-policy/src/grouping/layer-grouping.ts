import type { BufferId } from '../config/buffer-config.ts';
import { AmbiguousLayerError } from '../errors/ambiguous-layer-error.ts';
import { UnknownBufferError } from '../errors/unknown-buffer-error.ts';
import type { LayerGroupId } from '../lifecycle/lifecycle.ts';

/**
 * The view of consumers that know layers, not buffers: it exists where all buffers of a layer agree, and refuses a
 * split layer by name.
 */
export class LayerGrouping {
  readonly #groupsByLayer = new Map<number, LayerGroupId[]>();
  readonly #layersByGroup: readonly (readonly number[])[];
  readonly #firstSplit: number | null;

  /** @param bufferGrouping buffers of each group; index = group id */
  constructor(bufferGrouping: readonly (readonly BufferId[])[]) {
    this.#layersByGroup = Object.freeze(
      bufferGrouping.map((buffers, group) => {
        const layers = [...new Set(buffers.map((buffer) => buffer.layerId))];
        for (const layerId of layers) this.#join(layerId, group as LayerGroupId);
        return Object.freeze(layers);
      }),
    );
    const split = [...this.#groupsByLayer].find(([, groups]) => groups.length > 1);
    this.#firstSplit = split?.[0] ?? null;
  }

  /** The one group of a layer; throws `AmbiguousLayerError` or `UnknownBufferError`. */
  groupOf(layerId: number): LayerGroupId {
    const groups = this.#groupsByLayer.get(layerId);
    if (groups === undefined) throw new UnknownBufferError(layerId, null, []);
    if (groups.length > 1) throw new AmbiguousLayerError(layerId, groups);
    return groups[0];
  }

  /** The layers of every group; throws `AmbiguousLayerError` when one is split. */
  all(): readonly (readonly number[])[] {
    if (this.#firstSplit !== null) this.groupOf(this.#firstSplit);
    return this.#layersByGroup;
  }

  #join(layerId: number, group: LayerGroupId): void {
    const groups = this.#groupsByLayer.get(layerId);
    if (groups === undefined) this.#groupsByLayer.set(layerId, [group]);
    else groups.push(group);
  }
}
