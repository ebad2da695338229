import type { PageCommand } from '@bufferwise/cache-manager';
import { readBytes, requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PoolError } from '../errors/device-error.ts';
import { clearPagesReference, copyPagesReference } from '../kernels/page-copy/page-copy.reference.ts';
import { WebGpuPageDevice } from './webgpu-page-device.ts';

const gpu = await requestTestDevice();

/** Bytes that tell every word of every slot apart. */
function filled(bytes: number, seed = 1): Uint8Array {
  const words = Uint32Array.from({ length: bytes / 4 }, (_, i) => ((i + seed) * 2_654_435_761) >>> 0 || 1);
  return new Uint8Array(words.buffer);
}

/** Position of the first differing byte, or -1. Comparing a long array with `toEqual` takes seconds. */
function firstDifference(found: Uint8Array, expected: Uint8Array): number {
  return found.length === expected.length ? found.findIndex((byte, i) => byte !== expected[i]) : found.length;
}

const allSlots = (numSlots: number) => Int32Array.from({ length: numSlots }, (_, i) => i);

describe.each(['kernel', 'commands'] as const)('a page device that moves pages by %s', (pageMoves) => {
  const pages = new WebGpuPageDevice(gpu, { pageMoves });

  test('copies and clears in all pools of a group, and leaves other slots alone', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 300 }).map((words) => words * 4),
        fc.shuffledSubarray([...allSlots(24)], { minLength: 3 }),
        async (slotBytes, slots) => {
          const third = Math.floor(slots.length / 3);
          const piece = (i: number) => Int32Array.from(slots.slice(i * third, (i + 1) * third));
          const [sources, targets, cleared] = [piece(0), piece(1), piece(2)];
          const sizes = [slotBytes, 16];
          const pools = sizes.map((bytes, i) => pages.createPool({ label: `pool ${i}`, slotBytes: bytes, numSlots: 24 }));
          const expected = sizes.map((bytes, i) => filled(bytes * 24, i));
          for (const [i, pool] of pools.entries()) pages.writeSlots(pool, allSlots(24), expected[i]);
          pages.execute([
            { kind: 'copy', pools, sources, targets, count: third },
            { kind: 'clear', pools, slots: cleared, count: third },
          ]);
          for (let i = 0; i < pools.length; i++) {
            copyPagesReference(expected[i], sizes[i], sources, targets, third);
            clearPagesReference(expected[i], sizes[i], cleared, third);
            expect(firstDifference(new Uint8Array(await readBytes(gpu, pools[i].buffer)), expected[i])).toBe(-1);
            pools[i].destroy();
          }
        },
      ),
      { numRuns: 25 },
    );
  });

  test('carries pages over to other pools, whatever slots they get there', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 300 }).map((words) => words * 4),
        fc.shuffledSubarray([...allSlots(16)], { minLength: 1 }),
        fc.shuffledSubarray([...allSlots(24)], { minLength: 16 }),
        async (slotBytes, from, to) => {
          const sizes = [slotBytes, 16];
          const pools = sizes.map((bytes, i) => pages.createPool({ label: `pool ${i}`, slotBytes: bytes, numSlots: 16 }));
          const targetPools = sizes.map((bytes, i) =>
            pages.createPool({ label: `other pool ${i}`, slotBytes: bytes, numSlots: 24 }),
          );
          const bytes = sizes.map((size, i) => filled(size * 16, i));
          for (const [i, pool] of pools.entries()) pages.writeSlots(pool, allSlots(16), bytes[i]);
          const [sources, targets] = [Int32Array.from(from), Int32Array.from(to.slice(0, from.length))];
          pages.execute([{ kind: 'copy', pools, targetPools, sources, targets, count: sources.length }]);
          for (const [i, size] of sizes.entries()) {
            const expected = new Uint8Array(size * 24);
            targets.forEach((target, k) => {
              expected.set(bytes[i].subarray(sources[k] * size, (sources[k] + 1) * size), target * size);
            });
            expect(firstDifference(new Uint8Array(await readBytes(gpu, targetPools[i].buffer)), expected)).toBe(-1);
            pools[i].destroy();
            targetPools[i].destroy();
          }
        },
      ),
      { numRuns: 10 },
    );
  });

  test('refuses to carry pages into the pool itself, or into slots of another size', () => {
    const [pool, larger] = [8, 16].map((slotBytes) => pages.createPool({ label: 'pool', slotBytes, numSlots: 2 }));
    for (const target of [pool, larger]) {
      const command: PageCommand = {
        kind: 'copy',
        pools: [pool],
        targetPools: [target],
        sources: Int32Array.of(0),
        targets: Int32Array.of(1),
        count: 1,
      };
      expect(() => pages.execute([command])).toThrow(expect.objectContaining({ code: 'pool-range' }));
    }
    pool.destroy();
    larger.destroy();
  });

  test('uses as many entries of the index arrays as the command says, and reads them before it returns', async () => {
    const pool = pages.createPool({ label: 'pool', slotBytes: 4, numSlots: 4 });
    pages.writeSlots(pool, allSlots(4), filled(16));
    const [sources, targets] = [Int32Array.of(0, 1), Int32Array.of(2, 3)];
    pages.execute([
      { kind: 'copy', pools: [pool], sources, targets, count: 1 },
      { kind: 'clear', pools: [pool], slots: targets, count: 0 },
    ]);
    sources[0] = 3;
    targets[0] = 1;
    const found = new Uint8Array(16);
    await pages.readSlots(pool, allSlots(4), found);
    const expected = filled(16);
    expected.copyWithin(8, 0, 4);
    expect(found).toEqual(expected);
    pool.destroy();
  });

  test('copies more pages at once than its bounce buffer holds, and pages larger than that', async () => {
    for (const [slotBytes, numSlots] of [
      [384 * 1024, 10],
      [3 * 2 ** 20, 4],
    ]) {
      const pool = pages.createPool({ label: 'large', slotBytes, numSlots });
      const half = numSlots / 2;
      const bytes = filled(slotBytes * half);
      pages.writeSlots(pool, allSlots(half), bytes);
      const targets = allSlots(half).map((slot) => slot + half);
      pages.execute([{ kind: 'copy', pools: [pool], sources: allSlots(half), targets, count: half }]);
      const found = new Uint8Array(bytes.length);
      await pages.readSlots(pool, targets, found);
      expect(firstDifference(found, bytes)).toBe(-1);
      pool.destroy();
    }
  });
});

describe('a page device', () => {
  const pages = new WebGpuPageDevice(gpu, { keepReadbackBytes: 256 * 1024 });

  test('hands slots back in the order they were asked for', async () => {
    const slotBytes = 12;
    const pool = pages.createPool({ label: 'pool', slotBytes, numSlots: 8 });
    const bytes = filled(8 * slotBytes);
    pages.writeSlots(pool, allSlots(8), bytes);
    const slots = Int32Array.of(5, 6, 7, 0, 3, 2);
    const found = new Uint8Array(slots.length * slotBytes);
    await pages.readSlots(pool, slots, found);
    const expected = [...slots].flatMap((slot) => [...bytes.subarray(slot * slotBytes, (slot + 1) * slotBytes)]);
    expect([...found]).toEqual(expected);
    pool.destroy();
  });

  test('writes scattered slots, from bytes that the caller may change at once', async () => {
    const pool = pages.createPool({ label: 'pool', slotBytes: 4, numSlots: 4 });
    const source = Uint8Array.of(99, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3).subarray(1);
    pages.writeSlots(pool, Int32Array.of(3, 0, 1), source);
    source.fill(0);
    const found = new Uint8Array(16);
    await pages.readSlots(pool, allSlots(4), found);
    expect([...found]).toEqual([2, 2, 2, 2, 3, 3, 3, 3, 0, 0, 0, 0, 1, 1, 1, 1]);
    pool.destroy();
  });

  test('reads what a slot held at the call, though it is overwritten right after', async () => {
    const pool = pages.createPool({ label: 'pool', slotBytes: 64, numSlots: 2 });
    pages.writeSlots(pool, allSlots(2), filled(128));
    const [before, after] = [new Uint8Array(64), new Uint8Array(64)];
    const first = pages.readSlots(pool, Int32Array.of(0), before);
    pages.execute([{ kind: 'clear', pools: [pool], slots: Int32Array.of(0), count: 1 }]);
    const second = pages.readSlots(pool, Int32Array.of(0), after);
    await Promise.all([first, second]);
    expect(before).toEqual(filled(128).subarray(0, 64));
    expect(after).toEqual(new Uint8Array(64));
    pool.destroy();
  });

  test('reads more than one mappable buffer holds', async () => {
    const pool = pages.createPool({ label: 'large', slotBytes: 5 * 2 ** 19, numSlots: 8 });
    const bytes = filled(20 * 2 ** 20);
    pages.writeSlots(pool, allSlots(8), bytes);
    const found = new Uint8Array(bytes.length);
    await pages.readSlots(pool, allSlots(8), found);
    expect(firstDifference(found, bytes)).toBe(-1);
    pool.destroy();
  });

  test('keeps no more mappable memory than it was told, and uses it again', async () => {
    const pool = pages.createPool({ label: 'pool', slotBytes: 64 * 1024, numSlots: 8 });
    const read = (num: number) => pages.readSlots(pool, allSlots(num), new Uint8Array(num * 64 * 1024));
    await Promise.all([read(1), read(1), read(2), read(8)]);
    expect(pages.readbackBytes).toBeLessThanOrEqual(256 * 1024);
    const kept = pages.readbackBytes;
    expect(kept).toBeGreaterThan(0);
    await read(1);
    expect(pages.readbackBytes).toBe(kept);
    pool.destroy();
  });

  test('reads and writes no slots without a complaint', async () => {
    const pool = pages.createPool({ label: 'pool', slotBytes: 4, numSlots: 1 });
    pages.writeSlots(pool, Int32Array.of(), new Uint8Array());
    await pages.readSlots(pool, Int32Array.of(), new Uint8Array());
    pages.execute([]);
    await pages.landed();
    pool.destroy();
  });

  test('gives new memory as zeros', async () => {
    const pool = pages.createPool({ label: 'pool', slotBytes: 256, numSlots: 2 });
    await pool.ready;
    const found = new Uint8Array(512).fill(1);
    await pages.readSlots(pool, allSlots(2), found);
    expect(found.every((byte) => byte === 0)).toBe(true);
    pool.destroy();
  });
});

describe('a page device refuses', () => {
  const pages = new WebGpuPageDevice(gpu);
  const pool = pages.createPool({ label: 'small', slotBytes: 8, numSlots: 3 });

  test('specs that no memory could have', () => {
    for (const slotBytes of [0, -4, 6, 4.5, Number.NaN]) {
      expect(() => pages.createPool({ label: 'bad', slotBytes, numSlots: 1 })).toThrow(PoolError);
    }
    for (const numSlots of [0, -1, 1.5]) {
      expect(() => pages.createPool({ label: 'bad', slotBytes: 4, numSlots })).toThrow('at least one slot');
    }
  });

  test('pools beyond the limits of its device, with the way out', () => {
    const most = gpu.limits.maxStorageBufferBindingSize;
    expect(() => pages.createPool({ label: 'huge', slotBytes: 4, numSlots: most / 4 + 1 })).toThrow(
      `huge (${most / 4 + 1} slots of 4 bytes) needs maxStorageBufferBindingSize ${most + 4}, there is ${most}. Request the device with requiredLimits`,
    );
  });

  test('slots outside the pool, before anything happens', async () => {
    pages.writeSlots(pool, allSlots(3), filled(24));
    const good: PageCommand = { kind: 'clear', pools: [pool], slots: Int32Array.of(0), count: 1 };
    const bad = (slot: number): PageCommand => ({
      kind: 'copy',
      pools: [pool],
      sources: Int32Array.of(0),
      targets: Int32Array.of(slot),
      count: 1,
    });
    expect(() => pages.execute([good, bad(3)])).toThrow('slot 3 at position 0; the pool has slots 0 to 2');
    expect(() => pages.execute([good, bad(-1)])).toThrow(PoolError);
    expect(() => pages.execute([good, { ...good, count: 2 }])).toThrow('2 slots asked for');
    expect(() => pages.writeSlots(pool, Int32Array.of(0, 3), new Uint8Array(16))).toThrow('slot 3 at position 1');
    await expect(pages.readSlots(pool, Int32Array.of(-1), new Uint8Array(8))).rejects.toMatchObject({ code: 'pool-range' });
    const found = new Uint8Array(24);
    await pages.readSlots(pool, allSlots(3), found);
    expect(found).toEqual(filled(24));
  });

  test('bytes that do not hold the slots', async () => {
    expect(() => pages.writeSlots(pool, allSlots(2), new Uint8Array(15))).toThrow('source has 15 bytes, 2 slots take 16');
    await expect(pages.readSlots(pool, allSlots(2), new Uint8Array(15))).rejects.toThrow('target has 15 bytes');
  });

  test('pools of another device, and destroyed ones', () => {
    const others = new WebGpuPageDevice(gpu);
    const slots = Int32Array.of(0);
    expect(() => others.execute([{ kind: 'clear', pools: [pool], slots, count: 1 }])).toThrow('belongs to another device');
    const gone = pages.createPool({ label: 'gone', slotBytes: 4, numSlots: 1 });
    gone.destroy();
    expect(() => pages.writeSlots(gone, slots, new Uint8Array(4))).toThrow('gone: the pool was destroyed');
  });
});

describe('a page device whose device is lost', () => {
  test('rejects what is under way and what comes after, and throws nothing at callers that only hand work in', async () => {
    const losing = await requestTestDevice();
    const pages = new WebGpuPageDevice(losing);
    const pool = pages.createPool({ label: 'pool', slotBytes: 8, numSlots: 2 });
    await pool.ready;
    const underWay = pages.readSlots(pool, allSlots(2), new Uint8Array(16));
    losing.destroy();
    await expect(underWay).rejects.toMatchObject({ code: 'device-lost', reason: 'destroyed' });
    expect((await pages.lost).code).toBe('device-lost');
    pages.writeSlots(pool, allSlots(2), new Uint8Array(16));
    pages.execute([{ kind: 'clear', pools: [pool], slots: allSlots(2), count: 2 }]);
    await expect(pages.readSlots(pool, allSlots(2), new Uint8Array(16))).rejects.toMatchObject({ code: 'device-lost' });
    await expect(pages.landed()).rejects.toMatchObject({ code: 'device-lost' });
    await expect(pages.createPool({ label: 'late', slotBytes: 8, numSlots: 2 }).ready).rejects.toMatchObject({
      code: 'device-lost',
    });
    pages.destroy();
    expect(pages.allocatedBytes).toBe(0);
  });
});

test('destroying a page device gives back all its pools', () => {
  const pages = new WebGpuPageDevice(gpu);
  pages.createPool({ label: 'a', slotBytes: 8, numSlots: 2 });
  pages.createPool({ label: 'b', slotBytes: 4, numSlots: 1 });
  expect(pages.allocatedBytes).toBe(20);
  pages.destroy();
  expect(pages.allocatedBytes).toBe(0);
});
