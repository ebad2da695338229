import type { TierConfig } from '@bufferwise/core-policy';

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;

/** Larger device quotas use larger steps, up to 2^4 times the smallest. */
const MAX_DOUBLINGS = 4;

/**
 * Bytes of one grain, the step in which pools of a tier grow. Always a power of two.
 *
 * @param quota bytes; counts for the device only: 2 MiB below 2 GiB, doubled with every doubling of the quota, 32 MiB from 16 GiB
 */
export function tierGranularity({ tier, quota }: Pick<TierConfig, 'tier' | 'quota'>): number {
  if (tier === 'host') return 4 * KIB;
  if (tier === 'disk') return 2 * MIB;
  const wholeGib = Math.max(1, Math.floor(quota / GIB));
  return 2 * MIB * 2 ** Math.min(MAX_DOUBLINGS, Math.floor(Math.log2(wholeGib)));
}
