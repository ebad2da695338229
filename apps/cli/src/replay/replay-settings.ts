import {
  type BatchDesc,
  type CacheConfig,
  defineCacheConfig,
  type LayerConfig,
  presetLayers,
  type TierConfig,
} from '@bufferwise/core-policy';
import { UsageError } from '../cli-error.ts';
import { byteSize, wholeNumber } from '../input/arguments.ts';
import { readModelConfig } from '../input/model-config.ts';
import { parseRolePolicies } from '../input/policies.ts';
import { layerMix, withRolePolicies } from './layer-mix.ts';

/** The flags that make up one setting, as text. `--compare` changes some of them. */
export interface SettingFlags {
  readonly memory: string;
  readonly host: string;
  readonly disk: string;
  readonly mix: string;
  readonly model?: string;
  readonly variant: string;
  readonly policies?: string;
  readonly eviction: string;
  readonly 'tokens-per-block': string;
  readonly running: string;
  readonly 'snapshot-every': string;
  readonly rebalance: string;
}

/** On what a trace is replayed. */
export interface ReplaySettings {
  /** The flags that differ from the defaults, for people. */
  readonly label: string;
  readonly config: CacheConfig;
  readonly eviction: 'lru' | 'cost-aware';
  /** Requests that run at a time, at most. */
  readonly maxRunning: number;
  /** Tokens of all requests together in one step. */
  readonly stepTokens: number;
  /** Tokens between the snapshots of a prompt. */
  readonly snapshotEvery: number;
  /** Requests between two calls of `rebalance`; 0: never. */
  readonly rebalanceEvery: number;
}

export const SETTING_DEFAULTS = {
  memory: '1GiB',
  host: '0',
  disk: '0',
  mix: 'full',
  variant: 'whole',
  eviction: 'cost-aware',
  'tokens-per-block': '16',
  running: '64',
  'snapshot-every': '1024',
  rebalance: '0',
} as const;

/**
 * Reads one setting.
 *
 * @throws {UsageError} on a flag that says nothing; {PresetError} or {ConfigError} on a model or sizes that fit no cache
 */
export async function readSettings(flags: SettingFlags): Promise<ReplaySettings> {
  const tokensPerBlock = wholeNumber('tokens-per-block', flags['tokens-per-block'], { min: 1, max: 65_536 });
  const snapshotEvery = wholeNumber('snapshot-every', flags['snapshot-every'], { min: 1, max: 2 ** 24 });
  const layers = withRolePolicies(
    await layersOf(flags, tokensPerBlock),
    flags.policies === undefined ? {} : parseRolePolicies(flags.policies),
  );
  const colder = (tier: 'host' | 'disk') => (flags[tier] === '0' ? [] : [{ tier, quota: byteSize(tier, flags[tier]) }]);
  return {
    label: labelOf(flags),
    config: replayConfig(layers, {
      tokensPerBlock,
      snapshotEvery,
      tiers: [{ tier: 'device', quota: byteSize('memory', flags.memory) }, ...colder('host'), ...colder('disk')],
    }),
    eviction: oneOf('eviction', flags.eviction, ['cost-aware', 'lru'] as const),
    maxRunning: wholeNumber('running', flags.running, { min: 1, max: 65_536 }),
    stepTokens: STEP_TOKENS,
    snapshotEvery,
    rebalanceEvery: wholeNumber('rebalance', flags.rebalance, { min: 0, max: 2 ** 24 }),
  };
}

const STEP_TOKENS = 8192;

export interface ReplayMemory {
  readonly tokensPerBlock: number;
  /** Tokens between the snapshots of a prompt. */
  readonly snapshotEvery: number;
  readonly tiers: readonly [device: TierConfig, ...colder: TierConfig[]];
  /** A batch that always has room. Default none. */
  readonly constraint?: BatchDesc;
}

/** A cache for layers whose memory is shared out for prompts that stay, up to the last page. Throws {ConfigError}. */
export function replayConfig(layers: readonly LayerConfig[], memory: ReplayMemory): CacheConfig {
  const { tokensPerBlock, snapshotEvery, tiers, constraint } = memory;
  return defineCacheConfig({
    tokensPerBlock,
    layers,
    tiers,
    typicalStep: { kvCaches: typicalChunks(layers, { memory: tiers[0].quota, tokensPerBlock, snapshotEvery }) },
    constraints: constraint === undefined ? [] : [constraint],
    maxUtilForResume: 1,
  });
}

/**
 * The flags with some of them changed: `NAME=VALUE` with spaces between.
 *
 * @throws {UsageError} on anything else
 */
export function changedFlags(flags: SettingFlags, changes: string): SettingFlags {
  const names = [...Object.keys(SETTING_DEFAULTS), 'model', 'policies'];
  const changed = changes
    .trim()
    .split(/\s+/)
    .map((change) => {
      const [name, ...rest] = change.replace(/^--/, '').split('=');
      const value = rest.join('=');
      if (names.includes(name) && value !== '') return [name, value];
      throw new UsageError(
        `--compare has ${JSON.stringify(change)}; write NAME=VALUE with spaces between, where NAME is ${names.join(', ')}`,
      );
    });
  return { ...flags, ...Object.fromEntries(changed) };
}

async function layersOf({ model, mix, variant }: SettingFlags, tokensPerBlock: number): Promise<readonly LayerConfig[]> {
  if (model === undefined) return layerMix(mix, tokensPerBlock);
  const { config } = await readModelConfig(model);
  return presetLayers(config, { tokensPerBlock, variant: oneOf('variant', variant, ['whole', 'split'] as const) }).layers;
}

/** Memory is shared out for what stays of prompts: their blocks, and one state a snapshot. */
function typicalChunks(
  layers: readonly LayerConfig[],
  { memory, tokensPerBlock, snapshotEvery }: { memory: number; tokensPerBlock: number; snapshotEvery: number },
): { capacity: number; historyLength: number }[] {
  const blocks = Math.ceil(snapshotEvery / tokensPerBlock);
  const bytes = layers.reduce((sum, { type, buffers }) => {
    const page = buffers.reduce((total, { size }) => total + size, 0);
    return sum + (type === 'ssm' ? page : page * blocks);
  }, 0);
  const count = Math.min(MAX_TYPICAL_CHUNKS, Math.max(1, Math.ceil(memory / Math.max(1, bytes))));
  return new Array(count).fill({ capacity: snapshotEvery, historyLength: 0 });
}

/** Enough for the rounding of pools to vanish in the shares of the groups. */
const MAX_TYPICAL_CHUNKS = 1024;

function labelOf(flags: SettingFlags): string {
  const named = [...Object.entries(SETTING_DEFAULTS), ['model', undefined], ['policies', undefined]] as [
    keyof SettingFlags,
    string?,
  ][];
  const others = named
    .filter(
      ([name, fallback]) => name !== 'memory' && name !== 'eviction' && flags[name] !== undefined && flags[name] !== fallback,
    )
    .map(([name]) => `${name} ${flags[name]}`);
  return [flags.memory, flags.eviction, ...others].join(', ');
}

function oneOf<const T extends string>(name: string, value: string, known: readonly T[]): T {
  const found = known.find((each) => each === value);
  if (found !== undefined) return found;
  throw new UsageError(`--${name} is ${JSON.stringify(value)}; it is one of ${known.join(', ')}`);
}
