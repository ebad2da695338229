import { AdapterError, checkLayout } from '@bufferwise/adapter-kit';
import { HostPoolMemory, type KvCacheManager } from '@bufferwise/cache-manager';
import type { AttentionLayerConfig } from '@bufferwise/core-policy';

/** Keys and values of a layer go through the model together, so nothing of what needs them apart. */
const SUPPORTS = {
  splitBuffers: false,
  scratch: false,
  crossingScratch: false,
  partialBlocks: true,
  snapshots: false,
  replay: false,
  rewind: false,
  beams: false,
} as const;

/**
 * Whether pages of a manager can hold what a model remembers: the same buffers, in full attention that every match needs, in memory of
 * this process.
 *
 * @throws {AmbiguousLayerError} on a layer whose key and value have different lifecycles; {AdapterError} `layout-refused`, with the
 *   reason, on anything else. No memory was touched
 */
export function checkManager(manager: KvCacheManager, layers: readonly AttentionLayerConfig[]): void {
  checkLayout({ name: NAME, layers, supports: SUPPORTS }, manager.layout);
  const known = new Set(layers.flatMap(({ layerId, buffers }) => buffers.map(({ role }) => `${layerId} ${role}`)));
  for (const { layerId, role } of manager.bufferGrouping.flat()) {
    if (!known.has(`${layerId} ${role}`))
      throw refused(`buffer ${role} of layer ${layerId} is none of the model's; make a manager for this model alone`);
  }
  for (const { layerId, buffers } of layers) {
    const lifecycle = manager.lifecycles.get(manager.getLayerGroupId(layerId));
    if (lifecycle.kind !== 'attention')
      throw refused(`layer ${layerId} is recurrent state in it, and the model has keys and values`);
    if (lifecycle.policy !== 'required')
      throw refused(`layer ${layerId} is ${lifecycle.policy}: a model runs all of its layers or none, so all must be required`);
    if (lifecycle.windowSize !== null || lifecycle.sparsityGroup !== null)
      throw refused(
        `layer ${layerId} keeps only some of its blocks, and the model is fed with the keys and values of all tokens`,
      );
    for (const { role } of buffers) {
      if (!(manager.poolMemory(layerId, role) instanceof HostPoolMemory))
        throw refused(`its pages are not in memory of this process; give the manager a HostPageDevice`);
    }
  }
}

const NAME = 'the ONNX decoder';

function refused(why: string): AdapterError {
  return new AdapterError('layout-refused', `${NAME} cannot use this manager: ${why}`);
}
