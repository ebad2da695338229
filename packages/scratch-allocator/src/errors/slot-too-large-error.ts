import { BufferwiseError } from '@bufferwise/core-policy';

/** One slot of a pool takes more bytes than one shard may have, so that no cut of the pool helps. Code `slot-exceeds-shard`. */
export class SlotTooLargeError extends BufferwiseError {
  /** Bytes of one slot. */
  readonly slotBytes: number;
  /** Bytes that one shard may have. */
  readonly maxShardBytes: number;

  constructor(slotBytes: number, maxShardBytes: number) {
    super(
      'slot-exceeds-shard',
      `A slot of ${slotBytes} bytes does not fit into a shard of ${maxShardBytes}: request a device with a larger ` +
        '`maxStorageBufferBindingSize`, or make slots smaller with fewer tokens a block or with coalescing groups that split them.',
    );
    this.slotBytes = slotBytes;
    this.maxShardBytes = maxShardBytes;
  }
}
