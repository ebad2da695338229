import type { KvCacheManager } from '@bufferwise/cache-manager';
import { EngineError } from './engine-error.ts';
import type { GenerationRequest } from './generation.ts';

/** What a request is checked against. */
export interface RequestLimits {
  readonly vocabSize: number;
  readonly manager: KvCacheManager;
}

/** @throws {EngineError} with what is wrong with a request, and the way out */
export function checkRequest(
  { vocabSize, manager }: RequestLimits,
  {
    prompt,
    maxNewTokens,
    turnBorders = [],
    priority = 0,
  }: Pick<GenerationRequest, 'prompt' | 'maxNewTokens' | 'turnBorders' | 'priority'>,
): void {
  if (prompt.length === 0) throw new EngineError('prompt-invalid', 'the prompt has no tokens; give at least one');
  for (let i = 0; i < prompt.length; i++) {
    if (Number.isInteger(prompt[i]) && prompt[i] >= 0 && prompt[i] < vocabSize) continue;
    throw new EngineError(
      'prompt-invalid',
      `token ${i} of the prompt is ${prompt[i]}; this model has tokens 0 to ${vocabSize - 1}`,
    );
  }
  requireCount('maxNewTokens', maxNewTokens);
  if (!Number.isFinite(priority)) throw new EngineError('engine-options', `priority is ${priority}; it must be a finite number`);
  for (const border of turnBorders) {
    if (Number.isInteger(border) && border > 0 && border <= prompt.length) continue;
    throw new EngineError('engine-options', `turn border ${border} is not a token count of a prompt of ${prompt.length} tokens`);
  }
  const mostTokens = manager.clampSequenceLength(prompt.length + maxNewTokens - 1);
  if (prompt.length + maxNewTokens - 1 > mostTokens) {
    throw new EngineError(
      'prompt-too-long',
      `the prompt has ${prompt.length} tokens and ${maxNewTokens} are to be generated, but the cache holds at most ${mostTokens} tokens of one request; ` +
        'give the cache more memory, or shorten the prompt',
    );
  }
}

/** @throws {EngineError} `engine-options` on anything but a whole number from 1 to `most` */
export function requireCount(name: string, value: number, most = Number.POSITIVE_INFINITY, why = ''): void {
  if (Number.isInteger(value) && value >= 1 && value <= most) return;
  const range = most === Number.POSITIVE_INFINITY ? 'at least 1' : `from 1 to ${most}`;
  throw new EngineError('engine-options', `${name} is ${value}; it must be a whole number, ${range}${why}`);
}
