import type { LayerGroupId } from '../lifecycle/lifecycle.ts';
import { BufferwiseError } from './bufferwise-error.ts';

/** A layer was asked for its one group, and its buffers are in several. Code `ambiguous-layer`. */
export class AmbiguousLayerError extends BufferwiseError {
  /** The split layer. */
  readonly layerId: number;
  /** The groups of the layer's buffers, ascending. */
  readonly groups: readonly LayerGroupId[];

  constructor(layerId: number, groups: readonly LayerGroupId[]) {
    super(
      'ambiguous-layer',
      `Layer ${layerId} has buffers in groups ${groups.join(', ')}, so it has no single group: ` +
        'ask getBufferGroupId(layerId, role), or use bufferGrouping, instead.',
    );
    this.layerId = layerId;
    this.groups = Object.freeze([...groups]);
  }
}
