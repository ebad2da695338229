import type { ConsumerStep } from '@bufferwise/adapter-kit';
import type { LayerGroupId } from '@bufferwise/core-policy';
import { type Mamba2Layout, mamba2Layout, type PagePool, type WebGpuPoolMemory } from '@bufferwise/gpu-kernels';
import type { StorageLayout } from '@bufferwise/scratch-allocator';
import { type Mamba2Layer, type Mamba2Role, tailRows } from './mamba2-layer.ts';

/** Where one buffer of a layer lies in the layout that was bound. */
interface BoundBuffer {
  readonly groupId: LayerGroupId;
  readonly strideWords: number;
}

/** A layer, and where its pages are. */
export class BoundLayer {
  readonly layer: Mamba2Layer;
  readonly sizes: Mamba2Layout;
  readonly tailRows: number;
  readonly #buffers: ReadonlyMap<Mamba2Role, BoundBuffer>;

  constructor(layer: Mamba2Layer, layout: StorageLayout) {
    this.layer = layer;
    this.sizes = mamba2Layout(layer);
    this.tailRows = tailRows(layer);
    const roles: Mamba2Role[] = ['ssm_state', 'conv_state', ...(layer.replay ? (['replay_ring'] as const) : [])];
    this.#buffers = new Map(
      roles.map((role) => {
        const groupId = layout.bufferAttr(layer.layerId, role).lifecycleId;
        return [role, { groupId, strideWords: layout.pageStride(layer.layerId, role) / 4 }];
      }),
    );
  }

  groupOf(role: Mamba2Role): LayerGroupId {
    return this.#buffer(role).groupId;
  }

  /** The memory of a buffer in a step. */
  pool(step: ConsumerStep, role: Mamba2Role): PagePool {
    const { buffer } = step.poolMemory(this.layer.layerId, role) as WebGpuPoolMemory;
    return { pool: buffer, baseWords: 0, strideWords: this.#buffer(role).strideWords };
  }

  /** The page of a request in one buffer, -1 where it has none. */
  pageIndex(step: ConsumerStep, role: Mamba2Role, request: number): number {
    return step.pages.row(this.layer.layerId, role, request)[0] ?? -1;
  }

  #buffer(role: Mamba2Role): BoundBuffer {
    return this.#buffers.get(role) as BoundBuffer;
  }
}
