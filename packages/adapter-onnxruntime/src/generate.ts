import { OnnxDecoderError } from './errors.ts';
import type { OnnxSequence } from './onnx-sequence.ts';

/** Chooses the next token from the logits, `[vocabulary]`: its own to change. */
export type Sampler = (logits: Float32Array) => number | Promise<number>;

export interface GenerateOptions {
  /** Most tokens to answer with, at least 1. */
  readonly maxTokens: number;
  /** Tokens that end the answer, and are no part of it. Default: none. */
  readonly stopTokens?: Iterable<number>;
  /** Default: `greedy`. */
  readonly sample?: Sampler;
  readonly signal?: AbortSignal;
}

/** The token with the highest logit, the lowest of equal ones. */
export const greedy: Sampler = (logits) => {
  let best = 0;
  for (let token = 1; token < logits.length; token++) if (logits[token] > logits[best]) best = token;
  return best;
};

/** Runs `tokens`, then yields one token after the other, each once it was chosen. */
export async function* generateTokens(
  sequence: OnnxSequence,
  tokens: ArrayLike<number>,
  { maxTokens, stopTokens, sample = greedy, signal }: GenerateOptions,
): AsyncGenerator<number, void> {
  if (!Number.isSafeInteger(maxTokens) || maxTokens < 1)
    throw new OnnxDecoderError('onnx-options', `generate: maxTokens is ${maxTokens}; give a whole number from 1 on`);
  const stops = new Set(stopTokens);
  let next = tokens;
  for (let count = 0; count < maxTokens; count++) {
    const token = await sample(await sequence.forward(next, { signal }));
    if (stops.has(token)) return;
    yield token;
    next = [token];
  }
}
