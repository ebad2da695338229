import type { StorageDtype } from '../../kernel/storage-dtype.ts';
import { type StateShape, slicesOf } from './state-shape.ts';

/** Which text of a kernel runs: what the device has decides, and none of it changes what is computed beyond rounding. */
export interface RecurrentVariant {
  /** How state pages are bound: f16 pages as f16 where the device has it, else as words of two. */
  stored: 'f32' | 'f16' | 'halves';
  /** Sums over slices inside a subgroup, without workgroup memory and barriers. */
  subgroups: boolean;
}

/** What a caller may rule out; default: whatever the device has is used where it pays. */
export interface RecurrentOptions {
  subgroups?: boolean;
  nativeF16?: boolean;
}

export function variantFor(
  device: GPUDevice,
  shape: StateShape,
  dtype: StorageDtype,
  { subgroups = true, nativeF16 = true }: RecurrentOptions = {},
): RecurrentVariant {
  const native = nativeF16 && device.features.has('shader-f16');
  return {
    stored: dtype === 'f32' ? 'f32' : native ? 'f16' : 'halves',
    subgroups: subgroups && device.features.has('subgroups') && slicesFillSubgroups(device, slicesOf(shape.stateSize)),
  };
}

/** The invocations of a row group exchange by their lane number, so none of its subgroups may be cut. */
function slicesFillSubgroups(device: GPUDevice, numSlices: number): boolean {
  const least = device.adapterInfo.subgroupMinSize ?? 1;
  return numSlices > 1 && numSlices <= least && Number.isInteger(Math.log2(numSlices));
}
