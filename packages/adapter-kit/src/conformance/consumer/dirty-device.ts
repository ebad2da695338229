import { HostPageDevice, type HostPoolMemory, type PoolSpec } from '@bufferwise/cache-manager';

/** Memory as others left it: every byte 0xff, which is NaN to a float of any width. */
export class DirtyDevice extends HostPageDevice {
  override createPool(spec: PoolSpec): HostPoolMemory {
    const pool = super.createPool(spec);
    pool.bytes.fill(0xff);
    return pool;
  }
}
