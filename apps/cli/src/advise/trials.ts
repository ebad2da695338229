import {
  type BatchDesc,
  type CacheConfig,
  type CacheConfigInput,
  defineCacheConfig,
  type LayerConfig,
  type TierConfig,
} from '@bufferwise/core-policy';
import { explain } from '@bufferwise/scratch-allocator';
import type { TraceRequest } from '@bufferwise-internal/request-traces';
import { replayTrace } from '../replay/replay-loop.ts';
import { replayConfig } from '../replay/replay-settings.ts';
import { type BufferClass, bufferClasses, withClassPolicies } from './buffer-classes.ts';
import { type Choice, signatureOf, WHOLE } from './choices.ts';

export interface AdviceOptions {
  /** Of the model, everything required. */
  readonly layers: readonly LayerConfig[];
  readonly tokensPerBlock: number;
  /** Bytes on the device for all pages. */
  readonly memory: number;
  /** Tokens of a prefill step. */
  readonly stepTokens: number;
}

/** What a trace came to with one choice of policies. */
export interface ChoiceFigures extends Choice {
  /** Part of the prompts that matched, and tokens of them that ran through the model nevertheless. */
  readonly hitRate: number;
  readonly recomputedTokens: number;
  /** Tokens of prompts that ran through the model in all, and the part of the prompts that was spared. The fewer, the better the choice. */
  readonly computedTokens: number;
  readonly savedRate: number;
  /** Bytes that a token leaves for others, with its part of the snapshots. */
  readonly sharedBytesPerToken: number;
  /** What stayed for later requests when the last one had ended. */
  readonly keptBytes: number;
  readonly keptTokens: number;
  /** Requests of the trace's mean length that fit at a time; null where nothing limits them. */
  readonly numFitting: number | null;
  readonly preemptions: number;
  /** Requests that never fit, or whose answer was cut. */
  readonly unserved: number;
}

const MAX_RUNNING = 64;
const MIN_SNAPSHOT_EVERY = 1024;
/** Attempts to move memory between pools over a whole trace: each choice gets the split that suits it. */
const NUM_REBALANCES = 64;

/** Serves one trace with one choice of policies after the other. */
export class Trials {
  readonly classes: readonly BufferClass[];
  /** Tokens of prompt and answer of a mean request. */
  readonly meanLength: number;
  /** Requests that run at a time, at most: as many long ones as fit. Where they often make way for each other, chance decides between choices. */
  readonly maxRunning: number;
  /** Tokens between the snapshots of a prompt: a snapshot takes no more bytes than the tokens between two. */
  readonly snapshotEvery: number;
  readonly #requests: readonly TraceRequest[];
  readonly #options: AdviceOptions;
  readonly #longest: number;
  readonly #known = new Map<string, ChoiceFigures>();

  constructor(requests: readonly TraceRequest[], options: AdviceOptions) {
    this.#requests = requests;
    this.#options = options;
    this.classes = bufferClasses(options.layers, options.tokensPerBlock);
    const lengths = requests.map(({ promptLength, outputLength }) => promptLength + outputLength).sort((a, b) => a - b);
    this.meanLength = Math.ceil(sum(lengths) / lengths.length);
    this.#longest = lengths[lengths.length - 1];
    this.snapshotEvery = snapshotDistance(this.classes, options.tokensPerBlock);
    const long = lengths[Math.floor(0.9 * (lengths.length - 1))];
    this.maxRunning = Math.max(1, Math.min(MAX_RUNNING, this.#numFitting(WHOLE, long)));
  }

  /** Trials that were run: fewer than choices where a cache sees no difference between some. */
  get numRun(): number {
    return this.#known.size;
  }

  /** Trials that these choices take. */
  numFor(choices: readonly Choice[]): number {
    return new Set(choices.map((choice) => signatureOf(this.#options.layers, choice))).size;
  }

  /** Whether everything required takes more memory than there is, for the longest request alone. */
  get isMemoryRaised(): boolean {
    return isRaised(this.#config(WHOLE, 1));
  }

  async run(
    choice: Choice,
    { signal, progress }: { signal: AbortSignal; progress(served: number): void },
  ): Promise<ChoiceFigures> {
    const signature = signatureOf(this.#options.layers, choice);
    const figures = this.#known.get(signature) ?? (await this.#measure(choice, signal, progress));
    this.#known.set(signature, figures);
    return { ...figures, ...choice, sharedBytesPerToken: this.#sharedBytesPerToken(choice) };
  }

  async #measure(choice: Choice, signal: AbortSignal, progress: (served: number) => void): Promise<ChoiceFigures> {
    const twice = this.#config(choice, 2);
    const result = await replayTrace(
      this.#requests,
      {
        label: choice.name,
        config: isRaised(twice) ? this.#config(choice, 1) : twice,
        eviction: 'cost-aware',
        maxRunning: this.maxRunning,
        stepTokens: this.#options.stepTokens,
        snapshotEvery: this.snapshotEvery,
        rebalanceEvery: Math.max(8, Math.ceil(this.#requests.length / NUM_REBALANCES)),
      },
      { signal, progress },
    );
    const { hitRate, recomputedTokens, computedTokens, savedRate, keptBytes, keptTokens, preemptions, skipped, truncated } =
      result;
    const fitting = this.#numFitting(choice, this.meanLength);
    return {
      ...choice,
      hitRate,
      recomputedTokens,
      computedTokens,
      savedRate,
      sharedBytesPerToken: this.#sharedBytesPerToken(choice),
      keptBytes,
      keptTokens,
      numFitting: Number.isFinite(fitting) ? fitting : null,
      preemptions,
      unserved: skipped + truncated,
    };
  }

  /** The longest request always has room, and `numRuns - 1` more that only do its end again. */
  #config(choice: Choice, numRuns: 1 | 2): CacheConfig {
    const request = { capacity: this.#longest, historyLength: Math.max(0, this.#longest - this.#options.stepTokens) };
    const constraint: BatchDesc = { kvCaches: new Array(numRuns).fill(request), systemPromptLength: this.#longest };
    const { tokensPerBlock, layers, tiers } = this.#input(choice);
    return replayConfig(layers, { tokensPerBlock, snapshotEvery: this.snapshotEvery, tiers, constraint });
  }

  #numFitting(choice: Choice, length: number): number {
    const typicalStep = { kvCaches: [{ capacity: length, historyLength: length - 1 }] };
    return explain(defineCacheConfig({ ...this.#input(choice), typicalStep }), { lengths: [length] }).totals.requests[0]
      .numFitting;
  }

  #input({ policies }: Choice): CacheConfigInput & { tiers: [TierConfig] } {
    const { layers, tokensPerBlock, memory } = this.#options;
    return { tokensPerBlock, layers: withClassPolicies(layers, policies), tiers: [{ tier: 'device', quota: memory }] };
  }

  #sharedBytesPerToken({ policies }: Choice): number {
    const shared = this.classes.filter(({ name }) => policies[name] !== 'private');
    return sum(shared.map(({ bytes, per }) => (per === 'token' ? bytes : bytes / this.snapshotEvery)));
  }
}

function isRaised(config: CacheConfig): boolean {
  return explain(config, { lengths: [1] }).tiers[0].raised;
}

function snapshotDistance(classes: readonly BufferClass[], tokensPerBlock: number): number {
  const bytesOf = (per: BufferClass['per']) => sum(classes.filter((each) => each.per === per).map(({ bytes }) => bytes));
  const tokens = bytesOf('token') === 0 ? 0 : bytesOf('sequence') / bytesOf('token');
  return Math.max(MIN_SNAPSHOT_EVERY, Math.ceil(tokens / tokensPerBlock) * tokensPerBlock);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
