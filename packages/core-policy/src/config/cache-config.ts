import { ConfigError } from '../errors/config-error.ts';
import { LifecycleRegistry } from '../lifecycle/lifecycle-registry.ts';
import { type BatchDesc, type ResolvedBatchDesc, readBatchDesc } from './batch-desc.ts';
import { FaultLog } from './fault-log.ts';
import { type LayerConfig, type ResolvedLayer, readLayers } from './layer-config.ts';
import { join, orDefault, readBoolean, readFields, readList, readNumber, readWhole, refuseUnknownKeys } from './read-fields.ts';
import { readTiers, type TierConfig } from './tier-config.ts';

/** How far a step may be taken back while windowed layers share scratch slots. */
export interface SwaScratchReuse {
  /** Tokens at the end of a step that may be taken back, >= 0. Default 0. */
  maxRewindLen?: number;
}

/** What `defineCacheConfig` takes. */
export interface CacheConfigInput {
  /** Tokens in a block, > 0. */
  tokensPerBlock: number;
  /** The model's layers, in the order that gives lifecycles their ids. */
  layers: readonly LayerConfig[];
  /** Warm to cold. The first is the device, and only the first. */
  tiers: readonly TierConfig[];
  /** Whether a match may end inside a block of another sequence. Default true. */
  enablePartialReuse?: boolean;
  /** Tokens dropped from the tail of every token path before groups are asked, >= 0. Default 0. */
  reuseMatchBackoff?: number;
  /** Lets blocks that a windowed prefill step outruns share slots. Absent or null = off. */
  swaScratchReuse?: SwaScratchReuse | null;
  /** Publish only what a match at the end of a commit needs. Default: true with SSM buffers, which need it, else false. */
  commitMinSnapshot?: boolean;
  /** Share of a pool group in use above which no request is resumed: above 0, at most 1. Default 0.97. */
  maxUtilForResume?: number;
  /** Bytes on the device for each group, as weights > 0 of any sum; one per group id. Absent or null = from the batches. */
  initialPoolRatio?: readonly number[] | null;
  /** Batches that must always fit. Default none. */
  constraints?: readonly BatchDesc[];
  /** The batch that the first pool sizes are made for. */
  typicalStep?: BatchDesc | null;
}

/**
 * A cache config that has been checked: deeply frozen, a copy, with every default filled in.
 * It is itself an input that `defineCacheConfig` answers with an equal config.
 */
export interface CacheConfig {
  readonly tokensPerBlock: number;
  /** All layers, also those without buffers; no buffer has size 0. */
  readonly layers: readonly ResolvedLayer[];
  readonly tiers: readonly Readonly<TierConfig>[];
  readonly enablePartialReuse: boolean;
  readonly reuseMatchBackoff: number;
  /** Null = off. */
  readonly swaScratchReuse: Readonly<Required<SwaScratchReuse>> | null;
  readonly commitMinSnapshot: boolean;
  readonly maxUtilForResume: number;
  /** Null = from the batches. */
  readonly initialPoolRatio: readonly number[] | null;
  readonly constraints: readonly ResolvedBatchDesc[];
  /** Null = none given. */
  readonly typicalStep: ResolvedBatchDesc | null;
}

const KEYS: readonly (keyof CacheConfigInput)[] = [
  'tokensPerBlock',
  'layers',
  'tiers',
  'enablePartialReuse',
  'reuseMatchBackoff',
  'swaScratchReuse',
  'commitMinSnapshot',
  'maxUtilForResume',
  'initialPoolRatio',
  'constraints',
  'typicalStep',
];

/**
 * Checks a config, once and whole, and hands back a frozen copy with defaults filled in.
 * The input is read once and not kept; only its own properties count.
 *
 * @throws {ConfigError} when anything is wrong; it tells every fault with code and path
 * @example
 * const config = defineCacheConfig({
 *   tokensPerBlock: 32,
 *   layers: [{ type: 'attention', layerId: 0, buffers: [{ role: 'key', size: 8192 }, { role: 'value', size: 8192 }] }],
 *   tiers: [{ tier: 'device', quota: 64 << 20 }],
 * });
 */
export function defineCacheConfig(input: CacheConfigInput): CacheConfig {
  const faults = new FaultLog();
  const config = readCacheConfig(faults, input);
  faults.throwIfAny(ConfigError);
  return config as CacheConfig;
}

function readCacheConfig(faults: FaultLog, input: unknown): CacheConfig | undefined {
  const fields = readFields(faults, '', input);
  if (fields === undefined) return undefined;
  refuseUnknownKeys(faults, '', fields, KEYS, 'a cache config');
  const tokensPerBlock = readWhole(faults, 'tokensPerBlock', fields.tokensPerBlock, { min: 1, unit: 'tokens' });
  const layers = readLayers(faults, 'layers', fields.layers, tokensPerBlock);
  if (tokensPerBlock !== undefined && layers !== undefined) refuseUncountableBlock(faults, 'layers', tokensPerBlock, layers);
  const config = {
    tokensPerBlock,
    layers,
    tiers: readTiers(faults, 'tiers', fields.tiers),
    enablePartialReuse: readBoolean(faults, 'enablePartialReuse', orDefault(fields.enablePartialReuse, true)),
    reuseMatchBackoff: readWhole(faults, 'reuseMatchBackoff', orDefault(fields.reuseMatchBackoff, 0), { min: 0, unit: 'tokens' }),
    swaScratchReuse: readSwaScratchReuse(faults, 'swaScratchReuse', fields.swaScratchReuse),
    commitMinSnapshot: readCommitMinSnapshot(faults, 'commitMinSnapshot', fields.commitMinSnapshot, layers),
    maxUtilForResume: readMaxUtil(faults, 'maxUtilForResume', orDefault(fields.maxUtilForResume, 0.97)),
    initialPoolRatio: readPoolRatio(faults, 'initialPoolRatio', fields.initialPoolRatio, tokensPerBlock, layers),
    constraints: readList(faults, 'constraints', orDefault(fields.constraints, []), (element, path) =>
      readBatchDesc(faults, path, element),
    ),
    typicalStep: isNone(fields.typicalStep) ? null : readBatchDesc(faults, 'typicalStep', fields.typicalStep),
  };
  return faults.count > 0 ? undefined : (Object.freeze(config) as CacheConfig);
}

/** Offsets and slot sizes are sums of these bytes, so the sum of all must stay an exact number. */
function refuseUncountableBlock(faults: FaultLog, path: string, tokensPerBlock: number, layers: readonly ResolvedLayer[]): void {
  let bytes = 0;
  for (const layer of layers) {
    for (const { size, tokensPerBlockOverride = tokensPerBlock } of layer.buffers) {
      bytes += size * (tokensPerBlock / tokensPerBlockOverride);
    }
  }
  if (bytes <= Number.MAX_SAFE_INTEGER) return;
  const message = `one block of all buffers takes ${bytes} bytes, more than the ${Number.MAX_SAFE_INTEGER} that can be counted.`;
  faults.note('config-out-of-range', path, bytes, message);
}

function readSwaScratchReuse(faults: FaultLog, path: string, value: unknown): CacheConfig['swaScratchReuse'] | undefined {
  if (isNone(value)) return null;
  const fields = readFields(faults, path, value);
  if (fields === undefined) return undefined;
  refuseUnknownKeys(faults, path, fields, ['maxRewindLen'], 'swaScratchReuse');
  const limits = { min: 0, unit: 'tokens' };
  const maxRewindLen = readWhole(faults, join(path, 'maxRewindLen'), orDefault(fields.maxRewindLen, 0), limits);
  return maxRewindLen === undefined ? undefined : Object.freeze({ maxRewindLen });
}

function readCommitMinSnapshot(
  faults: FaultLog,
  path: string,
  value: unknown,
  layers: readonly ResolvedLayer[] | undefined,
): boolean | undefined {
  const ssmLayer = layers?.find((layer) => layer.type === 'ssm' && layer.buffers.length > 0);
  if (value === undefined) return ssmLayer !== undefined;
  const given = readBoolean(faults, path, value);
  if (given === false && ssmLayer !== undefined) {
    const message = `recurrent state can only be reused at exact snapshots, and layer ${ssmLayer.layerId} has some. Leave it out, or set true.`;
    return faults.note('config-min-snapshot-required', path, value, message);
  }
  return given;
}

function readMaxUtil(faults: FaultLog, path: string, value: unknown): number | undefined {
  const wanted = 'maxUtilForResume must be in (0, 1]';
  const share = readNumber(faults, path, value, wanted);
  if (share === undefined || (share > 0 && share <= 1)) return share;
  return faults.note('config-out-of-range', path, share, `${wanted}, got ${share}.`);
}

function readPoolRatio(
  faults: FaultLog,
  path: string,
  value: unknown,
  tokensPerBlock: number | undefined,
  layers: readonly ResolvedLayer[] | undefined,
): readonly number[] | null | undefined {
  if (isNone(value)) return null;
  const weights = readList(faults, path, value, (element, elementPath) => readWeight(faults, elementPath, element));
  if (weights === undefined || tokensPerBlock === undefined || layers === undefined) return undefined;
  const { size } = LifecycleRegistry.fromConfig({ tokensPerBlock, layers });
  if (weights.length !== size) {
    const message = `expected one weight per group: the layers make ${size} groups, got a length of ${weights.length}.`;
    return faults.note('config-pool-ratio-length', path, value, message);
  }
  if (weights.reduce((sum, weight) => sum + weight, 0) === Infinity) {
    return faults.note('config-out-of-range', path, value, 'the sum of the weights is not finite. Make all of them smaller.');
  }
  return weights;
}

function readWeight(faults: FaultLog, path: string, value: unknown): number | undefined {
  const wanted = 'expected a finite positive weight';
  const weight = readNumber(faults, path, value, wanted);
  if (weight === undefined || (weight > 0 && weight < Infinity)) return weight;
  return faults.note('config-out-of-range', path, weight, `${wanted}, got ${weight}.`);
}

function isNone(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}
