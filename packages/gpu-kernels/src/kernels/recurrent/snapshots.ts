import { KernelError } from '../../errors/kernel-error.ts';
import type { ComputeStep } from '../../kernel/compute-step.ts';
import type { Words } from './tables.ts';

/** A copy of what a request has in the middle of a call. */
export interface Snapshot {
  /** Ordinal of the request in the call. */
  request: number;
  /** Tokens of this call that it has seen, from 1 to all of the request's tokens. */
  numTokens: number;
  /** Kernel page index of the page that takes it; nobody else's in this call. -1 = none is taken. */
  pageIndex: number;
}

/** The snapshots of a call, as kernels read them. Made by `packSnapshots`. */
export interface SnapshotTable {
  /** `[numRequests + 1] u32` first entries, then `[numSnapshots, 2]` of number of tokens and page index. */
  words: Words;
  numRequests: number;
  numSnapshots: number;
}

/**
 * Adds a table of snapshots to the step's upload. State and tail of one request have pages of their own, so each has a table.
 *
 * @param tokensPerRequest as given to `packRequests`
 * @param snapshots        in any order, any number for each request
 * @throws {KernelError} `kernel-dispatch` when one lies outside of its request's tokens
 */
export function packSnapshots(
  step: ComputeStep,
  tokensPerRequest: ArrayLike<number>,
  snapshots: readonly Snapshot[],
): SnapshotTable {
  const numRequests = tokensPerRequest.length;
  const words = new Int32Array(numRequests + 1 + 2 * snapshots.length);
  for (const { request, numTokens } of snapshots) {
    const most = tokensPerRequest[request];
    if (!(Number.isInteger(numTokens) && numTokens >= 1 && numTokens <= most)) {
      throw new KernelError(
        'kernel-dispatch',
        'snapshots',
        `a snapshot is wanted after ${numTokens} tokens of request ${request}, which has ${most}. Before its first token, copy its page.`,
      );
    }
    words[request + 1]++;
  }
  for (let r = 0; r < numRequests; r++) words[r + 1] += words[r];
  const sorted = [...snapshots].sort((a, b) => a.request - b.request || a.numTokens - b.numTokens);
  sorted.forEach(({ numTokens, pageIndex }, i) => {
    words.set([numTokens, pageIndex], numRequests + 1 + 2 * i);
  });
  return { words: { buffer: step.upload(words) }, numRequests, numSnapshots: snapshots.length };
}
