import { type BufferId, BufferwiseError } from '@bufferwise/core-policy';

/** The pool of one buffer alone takes more bytes than a pool may have, so that no cut helps. Code `pool-exceeds-binding`. */
export class PoolTooLargeError extends BufferwiseError {
  readonly bufferId: BufferId;
  /** Bytes of the pool. */
  readonly poolBytes: number;
  /** Bytes that a pool may have. */
  readonly maxPoolBytes: number;

  constructor(bufferId: BufferId, poolBytes: number, maxPoolBytes: number) {
    super(
      'pool-exceeds-binding',
      `The pool of buffer "${bufferId.role}" of layer ${bufferId.layerId} alone takes ${poolBytes} bytes, and may have ${maxPoolBytes}: ` +
        'lower the quota of the device, or request a device with a larger `maxStorageBufferBindingSize`.',
    );
    this.bufferId = bufferId;
    this.poolBytes = poolBytes;
    this.maxPoolBytes = maxPoolBytes;
  }
}
