/** How an engine stores one value of a cache. */
export type CacheDtype = 'f32' | 'f16' | 'bf16' | 'f8' | 'i8';

/** Bytes of one value, without the scales that quantised values need beside them. */
const BYTES: Readonly<Record<CacheDtype, number>> = { f32: 4, f16: 2, bf16: 2, f8: 1, i8: 1 };

/** All storage types, widest first. */
export const CACHE_DTYPES: readonly CacheDtype[] = ['f32', 'f16', 'bf16', 'f8', 'i8'];

/** Bytes of one value. */
export function dtypeBytes(dtype: CacheDtype): number {
  return BYTES[dtype];
}
