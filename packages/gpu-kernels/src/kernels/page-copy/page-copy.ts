import type { Binding, ComputeStep } from '../../kernel/compute-step.ts';
import { defineKernel, type Kernel } from '../../kernel/kernel.ts';
import { packParams } from '../../kernel/params.ts';
import type { StepData } from '../../kernel/step-data.ts';
import code from './page-copy.wgsl';

const LANES = 64;

export interface PageCopyShape {
  /** Pairs to copy, or slots to clear. */
  count: number;
  /** Workgroups that share one slot. */
  groupsPerSlot: number;
}

export type PageCopyKernel = Kernel<'pool' | 'slots' | 'params', 'unitsPerLane', PageCopyShape>;

/**
 * Copies or clears whole slots inside one pool buffer. Bytes are moved as they are, whatever they stand for.
 *
 * - `pool` `[numSlots, slotUnits] Unit`, storage (read_write): source and target at once, which is why it is bound once.
 *   `Unit` is `vec4u` where slots are multiples of 16 bytes, else `u32`.
 * - `slots` read-only-storage: `[count, 2] u32` of source and target to copy, `[count] u32` to clear. All below numSlots; no slot
 *   is a target twice, or source and target in the same dispatch (dispatches of a step run one after the other).
 * - `params` uniform: `count`, `slotUnits`, `groupsPerSlot`.
 * - Workgroup 64 × 1 × 1; dispatch `count * groupsPerSlot` folded over x and y, `groupsPerSlot = ceil(slotUnits / (64 * unitsPerLane))`.
 * - Needs `maxStorageBufferBindingSize` of the pool's bytes, no feature, no workgroup memory.
 *
 * @see page-copy.reference.ts
 */
function pageKernel(action: 'copy' | 'clear', unit: 'u32' | 'vec4u'): PageCopyKernel {
  return defineKernel({
    label: `page-${action} ${unit}`,
    code: `alias Unit = ${unit};\n${code}`,
    entryPoint: action === 'copy' ? 'copyPages' : 'clearPages',
    bindings: { pool: 'storage', slots: 'read-only-storage', params: 'uniform' },
    constants: { unitsPerLane: 4 },
    workgroupSize: () => [LANES, 1, 1],
    workgroups: ({ count, groupsPerSlot }: PageCopyShape) => count * groupsPerSlot,
  });
}

/** By unit of transfer. */
export const pageCopyKernels = { u32: pageKernel('copy', 'u32'), vec4u: pageKernel('copy', 'vec4u') } as const;
export const pageClearKernels = { u32: pageKernel('clear', 'u32'), vec4u: pageKernel('clear', 'vec4u') } as const;

/** Adds `count` pairs of slots to the step's upload; good for the pools of one group, which share their slot ids. */
export function uploadSlotPairs(step: ComputeStep, sources: Int32Array, targets: Int32Array, count: number): StepData {
  const pairs = new Int32Array(count * 2);
  for (let i = 0; i < count; i++) {
    pairs[i * 2] = sources[i];
    pairs[i * 2 + 1] = targets[i];
  }
  return step.upload(pairs);
}

/** Adds the first `count` slots to the step's upload. */
export function uploadSlots(step: ComputeStep, slots: Int32Array, count: number): StepData {
  return step.upload(slots.subarray(0, count));
}

export interface PageCopyOptions {
  /** The whole pool, from its slot 0. */
  pool: Binding;
  /** Bytes of one slot, a positive multiple of 4. */
  slotBytes: number;
  /** Of `uploadSlotPairs` for a copy, of `uploadSlots` for a clear; or a buffer of that content, filled on the device. */
  slots: Binding;
  /** Entries of `slots` to use. */
  count: number;
}

/** Records the copy of `count` slots to others of the same pool: one dispatch. */
export function recordPageCopy(step: ComputeStep, options: PageCopyOptions): void {
  add(step, pageCopyKernels, options);
}

/** Records the clearing of `count` slots to zero: one dispatch. */
export function recordPageClear(step: ComputeStep, options: PageCopyOptions): void {
  add(step, pageClearKernels, options);
}

function add(step: ComputeStep, kernels: Readonly<Record<'u32' | 'vec4u', PageCopyKernel>>, options: PageCopyOptions): void {
  const { pool, slotBytes, slots, count } = options;
  const wide = slotBytes % 16 === 0;
  const kernel = wide ? kernels.vec4u : kernels.u32;
  const slotUnits = slotBytes / (wide ? 16 : 4);
  const groupsPerSlot = Math.ceil(slotUnits / (LANES * kernel.constants.unitsPerLane));
  const params = step.upload(
    packParams({ count: 'u32', slotUnits: 'u32', groupsPerSlot: 'u32' }, { count, slotUnits, groupsPerSlot }),
  );
  step.dispatch(kernel, { shape: { count, groupsPerSlot }, bindings: { pool, slots, params } });
}
