/** How numbers are stored in a page. Kernels compute in f32 with either. */
export type StorageDtype = 'f32' | 'f16';

/** Stored numbers that lie in a 32-bit word. */
export function numbersPerWord(dtype: StorageDtype): number {
  return dtype === 'f16' ? 2 : 1;
}
