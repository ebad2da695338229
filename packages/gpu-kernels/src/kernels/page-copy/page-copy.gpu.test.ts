import { readBytes, requestTestDevice, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ComputeContext } from '../../kernel/compute-context.ts';
import { clearPagesReference, copyPagesReference } from './page-copy.reference.ts';
import { pageClearKernels, pageCopyKernels, recordPageClear, recordPageCopy, uploadSlotPairs, uploadSlots } from './page-copy.ts';

const device = await requestTestDevice();
const context = ComputeContext.of(device);

/** Bytes that tell every word of every slot apart. */
function filledPool(numSlots: number, slotBytes: number): Uint8Array {
  const words = Uint32Array.from({ length: (numSlots * slotBytes) / 4 }, (_, i) => (i * 2_654_435_761) >>> 0 || 1);
  return new Uint8Array(words.buffer);
}

/** Position of the first differing byte, or -1. Comparing a long array with `toEqual` takes seconds. */
function firstDifference(found: Uint8Array, expected: Uint8Array): number {
  return found.length === expected.length ? found.findIndex((byte, i) => byte !== expected[i]) : found.length;
}

async function runCopy(bytes: Uint8Array, slotBytes: number, sources: Int32Array, targets: Int32Array): Promise<Uint8Array> {
  const pool = storageBuffer(device, bytes);
  const step = context.step('copy');
  const slots = uploadSlotPairs(step, sources, targets, sources.length);
  recordPageCopy(step, { pool, slotBytes, slots, count: sources.length });
  step.submit();
  const found = new Uint8Array(await readBytes(device, pool));
  pool.destroy();
  return found;
}

async function runClear(bytes: Uint8Array, slotBytes: number, cleared: Int32Array): Promise<Uint8Array> {
  const pool = storageBuffer(device, bytes);
  const step = context.step('clear');
  recordPageClear(step, { pool, slotBytes, slots: uploadSlots(step, cleared, cleared.length), count: cleared.length });
  step.submit();
  const found = new Uint8Array(await readBytes(device, pool));
  pool.destroy();
  return found;
}

/** Slots in random order, the first half of them sources, the second half targets. */
const someSlots = fc.integer({ min: 2, max: 40 }).chain((numSlots) =>
  fc.tuple(
    fc.constant(numSlots),
    fc.shuffledSubarray(
      Array.from({ length: numSlots }, (_, i) => i),
      { minLength: 2 },
    ),
  ),
);

/** On both sides of the border between units, and of one workgroup's stretch (1,024 bytes of words, 4,096 of vec4u). */
const someSlotBytes = fc.oneof(
  fc.integer({ min: 1, max: 600 }).map((words) => words * 4),
  fc.constantFrom(4, 12, 16, 20, 1020, 1024, 1028, 4080, 4096, 4112),
);

describe('page copy', () => {
  test('does what the reference does, for any slot size and any slots', async () => {
    await fc.assert(
      fc.asyncProperty(someSlotBytes, someSlots, async (slotBytes, [numSlots, slots]) => {
        const count = Math.floor(slots.length / 2);
        const sources = Int32Array.from(slots.slice(0, count));
        const targets = Int32Array.from(slots.slice(count, 2 * count));
        const bytes = filledPool(numSlots, slotBytes);
        const found = await runCopy(bytes, slotBytes, sources, targets);
        copyPagesReference(bytes, slotBytes, sources, targets, count);
        expect(firstDifference(found, bytes)).toBe(-1);
      }),
      { numRuns: 60 },
    );
  });

  test('copies one source to several targets', async () => {
    const bytes = filledPool(5, 48);
    const [sources, targets] = [Int32Array.of(2, 2, 2), Int32Array.of(0, 4, 1)];
    const found = await runCopy(bytes, 48, sources, targets);
    copyPagesReference(bytes, 48, sources, targets, 3);
    expect(found).toEqual(bytes);
  });

  test('reaches every slot when there are more workgroups than one dimension holds', async () => {
    const half = 66_000;
    const bytes = filledPool(2 * half, 4);
    const sources = Int32Array.from({ length: half }, (_, i) => i);
    const targets = Int32Array.from({ length: half }, (_, i) => 2 * half - 1 - i);
    const found = await runCopy(bytes, 4, sources, targets);
    copyPagesReference(bytes, 4, sources, targets, half);
    expect(firstDifference(found, bytes)).toBe(-1);
  });

  test('of a page just copied sees it, when it comes later in the step', async () => {
    const slotBytes = 32;
    const pool = storageBuffer(device, filledPool(3, slotBytes));
    const step = context.step('chain');
    recordPageCopy(step, { pool, slotBytes, slots: uploadSlotPairs(step, Int32Array.of(0), Int32Array.of(1), 1), count: 1 });
    recordPageCopy(step, { pool, slotBytes, slots: uploadSlotPairs(step, Int32Array.of(1), Int32Array.of(2), 1), count: 1 });
    step.submit();
    const found = new Uint8Array(await readBytes(device, pool));
    expect(found.subarray(64)).toEqual(found.subarray(0, 32));
  });

  test('of no pages adds no dispatch', () => {
    const step = context.step('none');
    recordPageCopy(step, {
      pool: storageBuffer(device, 16),
      slotBytes: 16,
      slots: uploadSlotPairs(step, Int32Array.of(), Int32Array.of(), 0),
      count: 0,
    });
    expect(step.submit().numDispatches).toBe(0);
  });
});

test('page clear zeroes the named slots and no other byte', async () => {
  await fc.assert(
    fc.asyncProperty(someSlotBytes, someSlots, async (slotBytes, [numSlots, slots]) => {
      const cleared = Int32Array.from(slots);
      const bytes = filledPool(numSlots, slotBytes);
      const found = await runClear(bytes, slotBytes, cleared);
      clearPagesReference(bytes, slotBytes, cleared, cleared.length);
      expect(firstDifference(found, bytes)).toBe(-1);
    }),
    { numRuns: 40 },
  );
});

test('every variant compiles ahead of its use', async () => {
  for (const kernel of [...Object.values(pageCopyKernels), ...Object.values(pageClearKernels)]) {
    await expect(context.warmUp(kernel)).resolves.toBeUndefined();
  }
});
