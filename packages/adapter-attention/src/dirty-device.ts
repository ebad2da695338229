import type { PoolSpec } from '@bufferwise/cache-manager';
import { WebGpuPageDevice, type WebGpuPoolMemory } from '@bufferwise/gpu-kernels';

/** Memory as others left it: every byte 0xff, which is NaN to a float of any width. */
export class DirtyDevice extends WebGpuPageDevice {
  override createPool(spec: PoolSpec): WebGpuPoolMemory {
    const pool = super.createPool(spec);
    this.device.queue.writeBuffer(pool.buffer, 0, new Uint8Array(pool.buffer.size).fill(0xff));
    return pool;
  }
}
