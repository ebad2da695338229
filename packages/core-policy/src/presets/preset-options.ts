import type { FaultLog } from '../config/fault-log.ts';
import { orDefault, readChoice, readFields, readWhole, refuseUnknownKeys } from '../config/read-fields.ts';
import type { PresetFaultCode } from '../errors/preset-error.ts';
import { CACHE_DTYPES, type CacheDtype } from './cache-dtype.ts';

/** `whole`: every buffer is required. `split`: what is cheap to have again is optional or private. */
export type PresetVariant = 'whole' | 'split';

/** How the engine stores what the model's config describes. */
export interface PresetOptions {
  /** Tokens in a block, > 0: the same number that goes into the cache config. */
  tokensPerBlock: number;
  /** Default `whole`. */
  variant?: PresetVariant;
  /** Keys, values and latents. Default `f16`, whatever the checkpoint's weights are stored in. */
  kvDtype?: CacheDtype;
  /** Recurrent state. Default `f32`: its rounding errors add up over the sequence. */
  stateDtype?: CacheDtype;
  /** Inputs that a causal convolution still reads. Default: `kvDtype`. */
  convDtype?: CacheDtype;
  /** Keys of a sparse indexer. `f8` has an f32 scale beside each 128 values. Default `f8`. */
  indexKeyDtype?: CacheDtype;
  /**
   * Tokens whose inputs a recurrent layer keeps beside its state, to compute the state again or take tokens back; 0 = no
   * ring. Default 16 in `split`, 0 in `whole`. Models without such layers ignore it.
   */
  replayTokens?: number;
}

/** Options with nothing left to default. */
export type ResolvedPresetOptions = Readonly<Required<PresetOptions>>;

const KEYS: readonly (keyof PresetOptions)[] = [
  'tokensPerBlock',
  'variant',
  'kvDtype',
  'stateDtype',
  'convDtype',
  'indexKeyDtype',
  'replayTokens',
];
const VARIANTS: readonly PresetVariant[] = ['whole', 'split'];

/** Tokens of a ring in an engine that has one, where the caller names no number. */
const DEFAULT_REPLAY_TOKENS = 16;

/** Checks the options; undefined when any of them is at fault. */
export function readPresetOptions(faults: FaultLog<PresetFaultCode>, value: unknown): ResolvedPresetOptions | undefined {
  const fields = readFields(faults, 'options', value);
  if (fields === undefined) return undefined;
  refuseUnknownKeys(faults, 'options', fields, KEYS, 'the options of a preset');
  const before = faults.count;
  const dtype = (key: keyof PresetOptions, fallback: unknown) =>
    readChoice(faults, `options.${key}`, orDefault(fields[key], fallback), CACHE_DTYPES);
  const tokensPerBlock = readWhole(faults, 'options.tokensPerBlock', fields.tokensPerBlock, { min: 1, unit: 'tokens' });
  const variant = readChoice(faults, 'options.variant', orDefault(fields.variant, 'whole'), VARIANTS);
  const kvDtype = dtype('kvDtype', 'f16');
  const options = {
    tokensPerBlock,
    variant,
    kvDtype,
    stateDtype: dtype('stateDtype', 'f32'),
    convDtype: fields.convDtype === undefined ? kvDtype : dtype('convDtype', undefined),
    indexKeyDtype: dtype('indexKeyDtype', 'f8'),
    replayTokens: readWhole(
      faults,
      'options.replayTokens',
      orDefault(fields.replayTokens, variant === 'split' ? DEFAULT_REPLAY_TOKENS : 0),
      { min: 0, unit: 'tokens' },
    ),
  };
  return faults.count > before ? undefined : (options as ResolvedPresetOptions);
}
