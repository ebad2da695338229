import { StateError } from '@bufferwise/core-policy';
import { SlotTooLargeError } from '../errors/slot-too-large-error.ts';

/** Bytes of one storage binding on a WebGPU device that was requested without limits. */
export const DEFAULT_MAX_SHARD_BYTES = 128 * 2 ** 20;

/** The pool to cut. */
export interface PoolShardsOptions {
  /** Bytes of one slot, > 0. */
  slotBytes: number;
  /** Slots of the pool, >= 0. */
  numSlots: number;
  /** Bytes that one binding of the device may have. Default 128 MiB, WebGPU's own. */
  maxShardBytes?: number;
}

/**
 * How a pool is cut into shards, each small enough for one binding of a device, and each a memory of its own that begins with its
 * first slot. A slot is never cut. All shards have as many slots as fit, but for the last, which has the rest. Immutable.
 */
export class PoolShards {
  readonly slotBytes: number;
  readonly numSlots: number;
  /** Slots of every shard but the last; >= 1. */
  readonly slotsPerShard: number;
  /** 0 when the pool has no slots, 1 when it need not be cut. */
  readonly numShards: number;

  /** Made by `poolShards`, which checks what it is given. */
  constructor(slotBytes: number, numSlots: number, slotsPerShard: number) {
    this.slotBytes = slotBytes;
    this.numSlots = numSlots;
    this.slotsPerShard = slotsPerShard;
    this.numShards = Math.ceil(numSlots / slotsPerShard);
    Object.freeze(this);
  }

  /** Index of the shard that has the slot. No garbage. @throws {StateError} `unknown-slot` when the pool has no such slot */
  shardOf(slot: number): number {
    this.#check(slot);
    return Math.floor(slot / this.slotsPerShard);
  }

  /** Position of the slot in its shard, from 0. No garbage. @throws {StateError} as `shardOf` */
  slotInShard(slot: number): number {
    this.#check(slot);
    return slot % this.slotsPerShard;
  }

  /** Bytes from the start of its shard to the slot. No garbage. @throws {StateError} as `shardOf` */
  offsetOf(slot: number): number {
    return this.slotInShard(slot) * this.slotBytes;
  }

  /** Slots of one shard. @throws {StateError} `unknown-shard` when there is no such shard */
  slotsIn(shard: number): number {
    if (!(shard >= 0 && shard < this.numShards && Number.isInteger(shard))) throw unknownShard(shard, this.numShards);
    return Math.min(this.slotsPerShard, this.numSlots - shard * this.slotsPerShard);
  }

  /** Bytes of one shard. @throws {StateError} as `slotsIn` */
  bytesOf(shard: number): number {
    return this.slotsIn(shard) * this.slotBytes;
  }

  /**
   * Page indices that lead into one shard: index `i` of a buffer, in either index mode, is index `i % pagesPerShard` of shard
   * `floor(i / pagesPerShard)`. What a kernel needs to read a table that was converted for the pool as a whole.
   *
   * @param converter of the buffer, or its two factors: sub-pages a slot, and pages a block
   */
  pagesPerShard({ scale, expansion }: { readonly scale: number; readonly expansion: number }): number {
    return this.slotsPerShard * scale * expansion;
  }

  #check(slot: number): void {
    if (!(slot >= 0 && slot < this.numSlots && Number.isInteger(slot))) throw unknownSlot(slot, this.numSlots);
  }
}

/**
 * Cuts a pool that is larger than one binding of the device.
 *
 * @throws {SlotTooLargeError} when a single slot is larger than a shard may be
 * @throws {StateError} `invalid-slot-count`, `invalid-slot-bytes` or `invalid-shard-bytes` when a number makes no sense
 * @example poolShards({ slotBytes: 24576, numSlots: 10000 })   // 2 shards: 5461 slots, 4539 slots
 */
export function poolShards({ slotBytes, numSlots, maxShardBytes = DEFAULT_MAX_SHARD_BYTES }: PoolShardsOptions): PoolShards {
  if (!(Number.isInteger(numSlots) && numSlots >= 0 && numSlots < 2 ** 31)) throw invalidSlotCount(numSlots);
  if (!isByteCount(slotBytes)) throw invalidBytes('invalid-slot-bytes', 'A slot', slotBytes);
  if (!isByteCount(maxShardBytes)) throw invalidBytes('invalid-shard-bytes', 'A shard', maxShardBytes);
  if (slotBytes > maxShardBytes) throw new SlotTooLargeError(slotBytes, maxShardBytes);
  return new PoolShards(slotBytes, numSlots, Math.floor(maxShardBytes / slotBytes));
}

function isByteCount(bytes: number): boolean {
  return Number.isSafeInteger(bytes) && bytes > 0;
}

function invalidSlotCount(numSlots: number): StateError {
  return new StateError('invalid-slot-count', `A number of slots must be an integer from 0 to 2^31 - 1, not ${numSlots}.`);
}

function invalidBytes(code: 'invalid-slot-bytes' | 'invalid-shard-bytes', what: string, bytes: number): StateError {
  return new StateError(code, `${what} has a whole number of bytes above 0, not ${bytes}.`);
}

function unknownSlot(slot: number, slots: number): StateError {
  return new StateError('unknown-slot', `There is no slot ${slot}: the pool has ${slots}, numbered from 0.`);
}

function unknownShard(shard: number, shards: number): StateError {
  return new StateError('unknown-shard', `There is no shard ${shard}: the pool has ${shards}, numbered from 0.`);
}
