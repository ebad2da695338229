import type { BufferConfig } from '@bufferwise/core-policy';
import { BufferwiseError } from '@bufferwise/core-policy';
import type { BufferAttr, StorageLayout } from '@bufferwise/scratch-allocator';
import { AdapterError } from '../errors.ts';
import type { BindOptions, ConsumerAdapter } from './consumer-adapter.ts';

/**
 * What every consumer looks at in `bind`: whether the layout has its buffers in the sizes it wants, and whether they lie in a way
 * that its `supports` allows.
 *
 * @throws {AdapterError} `layout-refused` with the first reason; {AmbiguousLayerError} for a split layer without `supports.splitBuffers`
 */
export function checkLayout(
  consumer: Pick<ConsumerAdapter, 'name' | 'layers' | 'supports'>,
  layout: StorageLayout,
  { scratch = false }: BindOptions = {},
): void {
  const { name, supports } = consumer;
  for (const { layerId, buffers } of consumer.layers) {
    const present = buffers.filter(({ size }) => size > 0);
    for (const buffer of present) checkBuffer(name, layout, layerId, buffer);
    if (!supports.splitBuffers && present.length > 0) layout.lifecycles.getLayerGroupId(layerId);
    if (!scratch) continue;
    for (const { role } of present) {
      const attr = layout.bufferAttr(layerId, role);
      if (!canBeScratch(layout, attr)) continue;
      if (!supports.scratch)
        throw refused(name, layerId, role, 'may be scratch, and this consumer needs pages; leave out `swaScratchReuse`');
      if (!supports.crossingScratch && blocksCross(layout, layerId, role)) {
        throw refused(
          name,
          layerId,
          role,
          `has scratch blocks that begin in one slot and end in the next, as its layer has ${attr.scratchPagesPerBlock} of the ${layout.pageIndexConverter(layerId, role).scale} buffers of a slot; keep other layers out of the slot with a coalescing group`,
        );
      }
    }
  }
}

/** Whether a scratch block of a buffer's layer may begin in one slot and end in the next. */
export function blocksCross(layout: StorageLayout, layerId: number, role: string): boolean {
  const { scale, scratchPagesPerBlock } = layout.pageIndexConverter(layerId, role);
  return scale % scratchPagesPerBlock !== 0;
}

function checkBuffer(name: string, layout: StorageLayout, layerId: number, { role, size }: BufferConfig): void {
  let stride: number;
  try {
    stride = layout.pageStride(layerId, role);
  } catch (cause) {
    if (!BufferwiseError.isInstance(cause)) throw cause;
    throw refused(name, layerId, role, 'is not in it; put the `layers` of the consumer into the config', cause);
  }
  if (stride !== size) throw refused(name, layerId, role, `has pages of ${stride} bytes in it, and this consumer writes ${size}`);
}

function canBeScratch(layout: StorageLayout, { lifecycleId }: BufferAttr): boolean {
  const lifecycle = layout.lifecycles.get(lifecycleId);
  return lifecycle.kind === 'attention' && lifecycle.windowSize !== null;
}

function refused(name: string, layerId: number, role: string, why: string, cause?: unknown): AdapterError {
  return new AdapterError('layout-refused', `${name} cannot read this layout: buffer ${role} of layer ${layerId} ${why}`, {
    cause,
  });
}
