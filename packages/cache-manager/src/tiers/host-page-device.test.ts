import { BufferwiseError } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import { HostPageDevice, type HostPoolMemory } from './host-page-device.ts';

const SLOT_BYTES = 4;

/** A pool of six slots, each filled with its own number. */
function numbered(device = new HostPageDevice()): { device: HostPageDevice; pool: HostPoolMemory } {
  const pool = device.createPool({ label: 'numbered', slotBytes: SLOT_BYTES, numSlots: 6 });
  for (let slot = 0; slot < 6; slot++) pool.bytes.fill(slot, slot * SLOT_BYTES, (slot + 1) * SLOT_BYTES);
  return { device, pool };
}

const slotsOf = ({ bytes }: HostPoolMemory) =>
  Array.from({ length: bytes.length / SLOT_BYTES }, (_, slot) => {
    const content = new Set(bytes.subarray(slot * SLOT_BYTES, (slot + 1) * SLOT_BYTES));
    return content.size === 1 ? [...content][0] : 'mixed';
  });

describe('a pool', () => {
  test('is ready at once and has its bytes', async () => {
    const { pool } = numbered();
    await pool.ready;
    expect([pool.bytes.length, pool.spec.label]).toEqual([24, 'numbered']);
  });

  test('has no bytes once it is destroyed', () => {
    const { pool } = numbered();
    pool.destroy();
    expect(pool.bytes.length).toBe(0);
  });

  test('that the process cannot have is refused with the way out', () => {
    const tooLarge = () => new HostPageDevice().createPool({ label: 'huge', slotBytes: 2 ** 40, numSlots: 2 ** 20 });
    expect(tooLarge).toThrow(BufferwiseError);
    expect(tooLarge).toThrow(/huge.*lower the quota/);
  });
});

describe('commands', () => {
  test('copy whole slots, and clear them, in the order in which they are given', () => {
    const { device, pool } = numbered();
    device.execute([
      { kind: 'copy', pools: [pool], sources: Int32Array.of(1, 2), targets: Int32Array.of(4, 5), count: 2 },
      { kind: 'clear', pools: [pool], slots: Int32Array.of(1), count: 1 },
    ]);
    expect(slotsOf(pool)).toEqual([0, 0, 2, 3, 1, 2]);
  });

  test('use no more entries than they count', () => {
    const { device, pool } = numbered();
    device.execute([
      { kind: 'copy', pools: [pool], sources: Int32Array.of(1, 2), targets: Int32Array.of(4, 5), count: 1 },
      { kind: 'clear', pools: [pool], slots: Int32Array.of(2, 3), count: 0 },
    ]);
    expect(slotsOf(pool)).toEqual([0, 1, 2, 3, 1, 5]);
  });

  test('reach every pool of the group', () => {
    const device = new HostPageDevice();
    const pools = [numbered(device).pool, numbered(device).pool];
    device.execute([{ kind: 'copy', pools, sources: Int32Array.of(3), targets: Int32Array.of(0), count: 1 }]);
    expect(pools.map((pool) => slotsOf(pool)[0])).toEqual([3, 3]);
  });
});

describe('slots', () => {
  test('are read in the order asked for, and written in the same layout', async () => {
    const { device, pool } = numbered();
    const bytes = new Uint8Array(2 * SLOT_BYTES);
    await device.readSlots(pool, Int32Array.of(5, 2), bytes);
    expect([...bytes]).toEqual([5, 5, 5, 5, 2, 2, 2, 2]);
    device.writeSlots(pool, Int32Array.of(0, 1), bytes);
    expect(slotsOf(pool)).toEqual([5, 2, 2, 3, 4, 5]);
  });

  test('have landed when the promise says so', async () => {
    await numbered().device.landed();
  });
});
