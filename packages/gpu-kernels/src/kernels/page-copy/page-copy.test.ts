import { expect, test } from 'vitest';
import { clearPagesReference, copyPagesReference } from './page-copy.reference.ts';
import { pageClearKernels, pageCopyKernels } from './page-copy.ts';

const pool = () => Uint8Array.from([1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);

test('the reference copies the first `count` pairs of slots and leaves the rest', () => {
  const bytes = pool();
  copyPagesReference(bytes, 4, Int32Array.of(0, 1), Int32Array.of(2, 0), 1);
  expect([...bytes]).toEqual([1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1]);
});

test('the reference clears the first `count` slots and leaves the rest', () => {
  const bytes = pool();
  clearPagesReference(bytes, 4, Int32Array.of(1, 0), 1);
  expect([...bytes]).toEqual([1, 1, 1, 1, 0, 0, 0, 0, 3, 3, 3, 3]);
});

test('copy and clear, in either unit, are dispatched by the same formula', () => {
  for (const kernel of [...Object.values(pageCopyKernels), ...Object.values(pageClearKernels)]) {
    expect(kernel.workgroups({ count: 0, groupsPerSlot: 3 }, kernel.constants)).toBe(0);
    expect(kernel.workgroups({ count: 5, groupsPerSlot: 3 }, kernel.constants)).toBe(15);
  }
});
