import type { BufferId } from '../config/buffer-config.ts';
import { UnknownBufferError } from '../errors/unknown-buffer-error.ts';
import type { LayerGroupId } from '../lifecycle/lifecycle.ts';

/** The groups of a config's buffers, asked by layer and role. Grows while a registry is made, and is then only read. */
export class BufferGrouping {
  readonly #buffersByGroup: BufferId[][] = [];
  readonly #groupsByLayer = new Map<number, Map<string, LayerGroupId>>();

  /** Puts a buffer into a group: one that exists, or the next new one. */
  add(layerId: number, role: string, group: LayerGroupId): void {
    const buffers = this.#buffersByGroup[group] ?? [];
    this.#buffersByGroup[group] = buffers;
    buffers.push(Object.freeze({ layerId, role }));
    const groupsByRole = this.#groupsByLayer.get(layerId) ?? new Map<string, LayerGroupId>();
    this.#groupsByLayer.set(layerId, groupsByRole);
    groupsByRole.set(role, group);
  }

  /** The group of one buffer; throws `UnknownBufferError`. O(1). */
  groupOf(layerId: number, role: string): LayerGroupId {
    const groupsByRole = this.#groupsByLayer.get(layerId);
    const group = groupsByRole?.get(role);
    if (group === undefined) throw new UnknownBufferError(layerId, role, [...(groupsByRole?.keys() ?? [])]);
    return group;
  }

  /** The buffers of every group in the order they were added, frozen. Index = group id. */
  all(): readonly (readonly BufferId[])[] {
    return Object.freeze(this.#buffersByGroup.map((buffers) => Object.freeze([...buffers])));
  }
}
