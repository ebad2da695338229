import type { FaultLog } from './fault-log.ts';
import { join, readChoice, readFields, readList, readName, readOptional, readWhole, refuseUnknownKeys } from './read-fields.ts';

/** Memory that kernels read. Always the first tier, and only the first. */
export interface DeviceTierConfig {
  tier: 'device';
  /** Bytes the tier may use, > 0. */
  quota: number;
}

/** Memory of the process. */
export interface HostTierConfig {
  tier: 'host';
  /** Bytes the tier may use, > 0. */
  quota: number;
}

/** Storage that a `TierStore` reaches. */
export interface DiskTierConfig {
  tier: 'disk';
  /** Bytes the tier may use, > 0. */
  quota: number;
  /** Where the store keeps its files. Checked by the store, as a config does no I/O. */
  path?: string;
}

/** One tier of storage and what it may use. */
export type TierConfig = DeviceTierConfig | HostTierConfig | DiskTierConfig;

const TIERS = ['device', 'host', 'disk'] as const;

/** Checks the tiers, warm to cold. */
export function readTiers(faults: FaultLog, path: string, value: unknown): readonly Readonly<TierConfig>[] | undefined {
  const tiers = readList(faults, path, value, (element, elementPath, index) => readTier(faults, elementPath, element, index));
  if (tiers?.length === 0) {
    return faults.note('config-no-tiers', path, value, 'is empty; expected at least { tier: "device", quota }.');
  }
  return tiers;
}

function readTier(faults: FaultLog, path: string, value: unknown, index: number): Readonly<TierConfig> | undefined {
  const fields = readFields(faults, path, value);
  if (fields === undefined) return undefined;
  const tier = readChoice(faults, join(path, 'tier'), fields.tier, TIERS);
  const quota = readWhole(faults, join(path, 'quota'), fields.quota, { min: 1, unit: 'bytes' });
  if (tier !== undefined) {
    const known = tier === 'disk' ? ['tier', 'quota', 'path'] : ['tier', 'quota'];
    refuseUnknownKeys(faults, path, fields, known, `a ${tier} tier`);
    if (index === 0 && tier !== 'device') {
      faults.note('config-first-tier-not-device', join(path, 'tier'), tier, `the first tier must be "device", got "${tier}".`);
    }
    if (index > 0 && tier === 'device') {
      const message = 'only the first tier can be "device". Give the first one the whole quota; the others are "host" or "disk".';
      faults.note('config-device-tier-not-first', join(path, 'tier'), tier, message);
    }
  }
  if (tier === undefined || quota === undefined) return undefined;
  if (tier !== 'disk' || fields.path === undefined) return Object.freeze({ tier, quota });
  const folder = readOptional(fields.path, (given) => readName(faults, join(path, 'path'), given, 'a folder'));
  return folder === undefined ? undefined : Object.freeze({ tier, quota, path: folder });
}
