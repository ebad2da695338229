import { type CacheConfig, type LifecycleId, StateError } from '@bufferwise/core-policy';
import { StorageLayout } from '../layout/storage-layout.ts';
import { fittingRequests } from '../planning/fitting-requests.ts';
import { planSlots } from '../planning/plan-slots.ts';
import { type Rational, rational } from '../rational.ts';
import { explainGroup, type GroupExplanation } from './group-explanation.ts';
import { explainTiers, type TierExplanation } from './tier-explanation.ts';

/** For which loads to tell the cost. */
export interface ExplainOptions {
  /** Lengths of a request, in tokens, >= 1. Default 1,024, 8,192 and 65,536. */
  readonly lengths?: readonly number[];
  /** Tokens that a prefill step takes from an empty request, >= 1. Default 2,048. */
  readonly prefillChunks?: readonly number[];
  /** Tokens at the start that all requests share, >= 0; only the numbers that fit depend on it. Default 0. */
  readonly systemPromptLength?: number;
  /** Of the same config, when the caller has one already. */
  readonly layout?: StorageLayout;
}

/** What a config comes to. Plain data: all bytes are exact. */
export interface ConfigExplanation {
  readonly tokensPerBlock: number;
  /** Layers that have buffers. */
  readonly numLayers: number;
  readonly numBuffers: number;
  /** Tokens at the start that the requests counted as fitting share. */
  readonly systemPromptLength: number;
  /** Index = group id. */
  readonly groups: readonly GroupExplanation[];
  readonly totals: TotalsExplanation;
  /** Index = tier. */
  readonly tiers: readonly TierExplanation[];
}

/** All groups together. */
export interface TotalsExplanation {
  /** Bytes of one page of each group. */
  readonly pageBytes: number;
  /** Bytes for each token of a block, over all attention groups: while every window still reaches back to the start. */
  readonly bytesPerToken: Rational;
  /** Bytes for each more token of a request that is longer than every window: attention without one. */
  readonly bytesPerLateToken: Rational;
  /** The most bytes that a request holds in a decode step in the groups that do not grow: windows and recurrent state. */
  readonly maxFixedBytes: number;
  /** Index as in `ExplainOptions.lengths`. */
  readonly requests: readonly TotalRequestExplanation[];
  /** Bytes that scratch saves, or would save. Index as in `ExplainOptions.prefillChunks`. */
  readonly scratch: readonly { readonly tokens: number; readonly bytesSaved: number }[];
}

/** A request while it writes its token number `tokens`. */
export interface TotalRequestExplanation {
  readonly tokens: number;
  readonly bytes: number;
  /** Requests of this length that the device has room for at a time; infinite when no buffer takes any. */
  readonly numFitting: number;
}

const DEFAULT_LENGTHS: readonly number[] = [1024, 8192, 65536];
const DEFAULT_PREFILL_CHUNKS: readonly number[] = [2048];

/**
 * Describes what a config comes to: its groups, where their bytes lie, what a token and a request cost, what scratch saves, how
 * many requests fit, and how each tier spends its quota. Pure; `formatExplanation` makes a text of it.
 *
 * @throws {StateError} `invalid-length` when a length is no whole number of tokens, or too small
 */
export function explain(config: CacheConfig, options: ExplainOptions = {}): ConfigExplanation {
  const { lengths = DEFAULT_LENGTHS, prefillChunks = DEFAULT_PREFILL_CHUNKS, systemPromptLength = 0 } = options;
  for (const length of lengths) checkLength('A length', length, 1);
  for (const tokens of prefillChunks) checkLength('A prefill chunk', tokens, 1);
  checkLength('A system prompt', systemPromptLength, 0);
  const layout = options.layout ?? StorageLayout.fromConfig(config);
  const plans = planSlots(layout, config);
  const groups = Array.from({ length: layout.lifecycles.size }, (_, id) =>
    explainGroup(layout, id as LifecycleId, config, { lengths, prefillChunks }),
  );
  const numFitting = lengths.map((length) =>
    fittingRequests(layout, config, { slots: plans[0].slots, length, systemPromptLength }),
  );
  return {
    tokensPerBlock: layout.tokensPerBlock,
    numLayers: config.layers.filter(({ buffers }) => buffers.length > 0).length,
    numBuffers: sum(groups, ({ buffers }) => buffers.length),
    systemPromptLength,
    groups,
    totals: {
      pageBytes: sum(groups, ({ pageBytes }) => pageBytes),
      bytesPerToken: bytesPerToken(groups.filter(isAttention), layout.tokensPerBlock),
      bytesPerLateToken: bytesPerToken(
        groups.filter(({ maxRequestPages }) => maxRequestPages === null),
        layout.tokensPerBlock,
      ),
      maxFixedBytes: sum(groups, ({ maxRequestBytes }) => maxRequestBytes ?? 0),
      requests: lengths.map((tokens, index) => ({
        tokens,
        bytes: sum(groups, ({ requests }) => requests[index].bytes),
        numFitting: numFitting[index],
      })),
      scratch: prefillChunks.map((tokens, index) => ({
        tokens,
        bytesSaved: sum(groups, ({ scratch }) => scratch?.chunks[index].bytesSaved ?? 0),
      })),
    },
    tiers: explainTiers(layout, config, plans),
  };
}

function isAttention({ lifecycle }: GroupExplanation): boolean {
  return lifecycle.kind === 'attention';
}

function bytesPerToken(groups: readonly GroupExplanation[], tokensPerBlock: number): Rational {
  const pageBytes = sum(groups, (group) => group.pageBytes);
  return rational(pageBytes, tokensPerBlock);
}

function sum(groups: readonly GroupExplanation[], part: (group: GroupExplanation) => number): number {
  return groups.reduce((total, group) => total + part(group), 0);
}

function checkLength(what: string, length: number, least: number): void {
  if (Number.isSafeInteger(length) && length >= least) return;
  throw new StateError('invalid-length', `${what} is a whole number of tokens of at least ${least}, not ${length}.`);
}
