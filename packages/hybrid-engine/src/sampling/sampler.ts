import { chooseGreedy } from './greedy.ts';
import { type Choice, describeChoice } from './log-probability.ts';
import { Random } from './random.ts';
import { SamplingError } from './sampling-error.ts';

/** How the next token is chosen. Filters apply in this order: temperature, topK, topP. */
export interface SamplingOptions {
  /** Logits are divided by it; 0 means greedy. Default 0. */
  temperature?: number;
  /** Only this many of the most likely tokens are drawn from, >= 1. Default: all. */
  topK?: number;
  /** Only the most likely tokens that together reach this probability are drawn from, above 0, at most 1. Default 1. */
  topP?: number;
  /** Whole number >= 0 that the random numbers follow from. Default 0. */
  seed?: number;
}

/** Chooses the tokens of one answer. Same seed, settings and logits: same tokens. */
export class Sampler {
  readonly #temperature: number;
  readonly #topK: number;
  readonly #topP: number;
  readonly #random: Random;

  /** @throws {SamplingError} `sampling-options`, with the name of the option */
  constructor(options: SamplingOptions = {}) {
    const { temperature = 0, topK = Number.POSITIVE_INFINITY, topP = 1, seed = 0 } = options;
    requireOption('temperature', temperature, temperature >= 0 && temperature < Number.POSITIVE_INFINITY, 'a number >= 0');
    requireOption(
      'topK',
      topK,
      topK >= 1 && (Number.isInteger(topK) || topK === Number.POSITIVE_INFINITY),
      'a whole number >= 1',
    );
    requireOption('topP', topP, topP > 0 && topP <= 1, 'above 0 and at most 1');
    requireOption('seed', seed, Number.isSafeInteger(seed) && seed >= 0, 'a whole number >= 0');
    this.#temperature = temperature;
    this.#topK = topK;
    this.#topP = topP;
    this.#random = new Random(seed);
  }

  /**
   * The next token. Takes one random number from the generator unless the choice is greedy.
   *
   * @param logits `[vocabSize] f32`, not empty, unchanged; minus infinity forbids a token
   * @throws {SamplingError} `sampling-logits` when they hold NaN or plus infinity, or nothing finite
   */
  choose(logits: Float32Array): Choice {
    const greedy = chooseGreedy(logits);
    if (this.#temperature === 0) return greedy;
    const highest = logits[greedy.token];
    const candidates = this.#candidates(logits, highest);
    const token = draw(candidates, this.#random.next());
    return describeChoice(logits, token, highest);
  }

  /** The tokens to draw from, most likely first (of equals the lowest id first), with their weights relative to the best. */
  #candidates(logits: Float32Array, highest: number): Candidates {
    let tokens = Uint32Array.from(logits.keys());
    const filters = this.#topK < logits.length || this.#topP < 1;
    if (filters) tokens.sort((a, b) => logits[b] - logits[a] || a - b);
    tokens = tokens.subarray(0, Math.min(this.#topK, tokens.length));
    const weights = Float64Array.from(tokens, (token) => Math.exp((logits[token] - highest) / this.#temperature));
    if (this.#topP === 1) return { tokens, weights };
    const kept = prefixReaching(weights, this.#topP * total(weights));
    return { tokens: tokens.subarray(0, kept), weights: weights.subarray(0, kept) };
  }
}

interface Candidates {
  tokens: Uint32Array;
  /** At least one of them above zero. */
  weights: Float64Array;
}

function requireOption(option: string, value: number, holds: boolean, wanted: string): void {
  if (!holds) throw new SamplingError('sampling-options', `${option} must be ${wanted}, is ${value}.`, option);
}

function total(weights: Float64Array): number {
  return weights.reduce((sum, weight) => sum + weight, 0);
}

/** How many weights, from the first, it takes to reach `goal`: at least one. */
function prefixReaching(weights: Float64Array, goal: number): number {
  let reached = 0;
  for (let i = 0; i < weights.length; i++) {
    reached += weights[i];
    if (reached >= goal) return i + 1;
  }
  return weights.length;
}

/** The token whose share of the total holds the point `at`, in [0, 1). Tokens of weight zero are never drawn. */
function draw({ tokens, weights }: Candidates, at: number): number {
  const goal = at * total(weights);
  let reached = 0;
  let last = 0;
  for (let i = 0; i < weights.length; i++) {
    if (weights[i] === 0) continue;
    reached += weights[i];
    last = i;
    if (reached > goal) break;
  }
  return tokens[last];
}
