import { BufferwiseError, StateError } from '@bufferwise/core-policy';
import { describe, expect, it } from 'vitest';
import { SlotTooLargeError } from '../errors/slot-too-large-error.ts';
import { poolShards } from './pool-shards.ts';

const MIB = 2 ** 20;

function codeOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(BufferwiseError);
    return (error as BufferwiseError).code;
  }
  return 'nothing thrown';
}

describe('poolShards', () => {
  it('leaves a pool in one piece up to the last slot that fits', () => {
    const shapes = [127, 128, 129].map((numSlots) => poolShards({ slotBytes: MIB, numSlots }));
    expect(shapes.map(({ numShards, slotsPerShard }) => [numShards, slotsPerShard])).toEqual([
      [1, 128],
      [1, 128],
      [2, 128],
    ]);
    expect([shapes[2].slotsIn(0), shapes[2].slotsIn(1)]).toEqual([128, 1]);
  });

  it('never cuts a slot: 5461 slots of 24 KiB leave 8 KiB of a binding unused', () => {
    const shards = poolShards({ slotBytes: 24576, numSlots: 10000 });
    expect([shards.numShards, shards.slotsPerShard, shards.slotsIn(1)]).toEqual([2, 5461, 4539]);
    expect([shards.bytesOf(0), shards.bytesOf(1)]).toEqual([128 * MIB - 8192, 4539 * 24576]);
  });

  it('says where each slot lies', () => {
    const shards = poolShards({ slotBytes: 100, numSlots: 7, maxShardBytes: 350 });
    const slots = [0, 1, 2, 3, 4, 5, 6];
    expect(slots.map((slot) => shards.shardOf(slot))).toEqual([0, 0, 0, 1, 1, 1, 2]);
    expect(slots.map((slot) => shards.slotInShard(slot))).toEqual([0, 1, 2, 0, 1, 2, 0]);
    expect(slots.map((slot) => shards.offsetOf(slot))).toEqual([0, 100, 200, 0, 100, 200, 0]);
  });

  it('has no shard for no slots, and one for each slot when two do not fit together', () => {
    expect(poolShards({ slotBytes: 8, numSlots: 0 }).numShards).toBe(0);
    const shards = poolShards({ slotBytes: 8, numSlots: 3, maxShardBytes: 15 });
    expect([shards.numShards, shards.slotsPerShard, shards.shardOf(2), shards.offsetOf(2)]).toEqual([3, 1, 2, 0]);
  });

  it('refuses a slot that is larger than a shard, and names both sizes and the way out', () => {
    expect(poolShards({ slotBytes: 128 * MIB, numSlots: 2 }).numShards).toBe(2);
    const call = () => poolShards({ slotBytes: 128 * MIB + 4, numSlots: 2 });
    expect(call).toThrow(SlotTooLargeError);
    expect(call).toThrow(/134217732 bytes.*134217728.*maxStorageBufferBindingSize/);
    expect(codeOf(call)).toBe('slot-exceeds-shard');
    expect(new SlotTooLargeError(9, 8)).toMatchObject({ name: 'SlotTooLargeError', slotBytes: 9, maxShardBytes: 8 });
  });

  it.each([
    ['invalid-slot-count', { slotBytes: 8, numSlots: -1 }],
    ['invalid-slot-count', { slotBytes: 8, numSlots: 1.5 }],
    ['invalid-slot-count', { slotBytes: 8, numSlots: 2 ** 31 }],
    ['invalid-slot-bytes', { slotBytes: 0, numSlots: 1 }],
    ['invalid-slot-bytes', { slotBytes: 0.5, numSlots: 1 }],
    ['invalid-shard-bytes', { slotBytes: 8, numSlots: 1, maxShardBytes: 0 }],
    ['invalid-shard-bytes', { slotBytes: 8, numSlots: 1, maxShardBytes: Number.NaN }],
    ['nothing thrown', { slotBytes: 8, numSlots: 2 ** 31 - 1, maxShardBytes: 8 }],
  ])('answers %s to %o', (code, options) => {
    expect(codeOf(() => poolShards(options))).toBe(code);
  });

  it('knows only its own slots and shards', () => {
    const shards = poolShards({ slotBytes: 8, numSlots: 3, maxShardBytes: 16 });
    for (const slot of [-1, 3, 0.5, Number.NaN]) {
      expect(codeOf(() => shards.shardOf(slot))).toBe('unknown-slot');
      expect(codeOf(() => shards.offsetOf(slot))).toBe('unknown-slot');
      expect(codeOf(() => shards.slotInShard(slot))).toBe('unknown-slot');
    }
    for (const shard of [-1, 2, 0.5]) {
      expect(codeOf(() => shards.slotsIn(shard))).toBe('unknown-shard');
      expect(codeOf(() => shards.bytesOf(shard))).toBe('unknown-shard');
    }
    expect(() => shards.shardOf(3)).toThrow(StateError);
  });
});
