import { KernelError } from '../../errors/kernel-error.ts';
import type { ComputeStep } from '../../kernel/compute-step.ts';
import type { Words } from './tables.ts';

/** Requests whose tokens lie behind one another, as the rows of a step. Made by `packRequests`, good for all kernels of that step. */
export interface PackedRequests {
  /** `[numRequests + 1] u32`: row of each request's first token, and the number of rows. Never falls. */
  starts: Words;
  numRequests: number;
  /** Tokens of all requests together. */
  numTokens: number;
  /** True when each request has exactly one token, so that row r is request r. */
  oneTokenEach: boolean;
}

/**
 * Lays requests out one behind the other and adds their places to the step's upload.
 *
 * @param tokensPerRequest tokens of each request in this step, >= 0; a request without tokens keeps its pages as they are
 * @throws {KernelError} `kernel-dispatch` when a count is not an integer >= 0
 * @example packRequests(step, [3, 1, 64])   // starts [0, 3, 4, 68]
 */
export function packRequests(step: ComputeStep, tokensPerRequest: ArrayLike<number>): PackedRequests {
  const numRequests = tokensPerRequest.length;
  const starts = new Uint32Array(numRequests + 1);
  let oneTokenEach = true;
  for (let r = 0; r < numRequests; r++) {
    const count = tokensPerRequest[r];
    if (!Number.isInteger(count) || count < 0) {
      throw new KernelError('kernel-dispatch', 'requests', `request ${r} has ${count} tokens, not an integer >= 0.`);
    }
    starts[r + 1] = starts[r] + count;
    oneTokenEach &&= count === 1;
  }
  return { starts: { buffer: step.upload(starts) }, numRequests, numTokens: starts[numRequests], oneTokenEach };
}
