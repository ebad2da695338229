import { expect, it } from 'vitest';
import { tierGranularity } from './tier-granularity.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;

it.each([
  [1, 2],
  [GIB - 1, 2],
  [2 * GIB - 1, 2],
  [2 * GIB, 4],
  [4 * GIB - 1, 4],
  [4 * GIB, 8],
  [8 * GIB - 1, 8],
  [8 * GIB, 16],
  [16 * GIB - 1, 16],
  [16 * GIB, 32],
  [900 * GIB, 32],
])('a device quota of %i bytes grows in steps of %i MiB', (quota, mebibytes) => {
  expect(tierGranularity({ tier: 'device', quota })).toBe(mebibytes * MIB);
});

it('host and disk grow in the same steps whatever the quota', () => {
  for (const quota of [1, 64 * GIB]) {
    expect(tierGranularity({ tier: 'host', quota })).toBe(4096);
    expect(tierGranularity({ tier: 'disk', quota })).toBe(2 * MIB);
  }
});
