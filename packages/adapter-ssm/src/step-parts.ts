import type { StepRequest } from '@bufferwise/adapter-kit';

/** Tokens of one request that go through one kind of page together. */
export interface StepPart {
  /** Row of the request in the step's tables. */
  readonly request: number;
  /** Place of the first token among all tokens of the step. */
  readonly firstToken: number;
  readonly numTokens: number;
  /** Position of the first token in its sequence. */
  readonly position: number;
  /**
   * `own`: the request's page is read and written. `aside`: the tokens are given again, while the page already holds what is behind
   * them; it is neither read nor written.
   */
  readonly page: 'own' | 'aside';
}

/**
 * The tokens of a step in parts, in their order: where a request's page was reused, those before the match are a part of their own.
 *
 * @param reuses whether the page of a request holds what was matched
 */
export function partsOf(requests: readonly StepRequest[], reuses: (request: StepRequest) => boolean): StepPart[] {
  const parts: StepPart[] = [];
  let firstToken = 0;
  for (const [row, request] of requests.entries()) {
    const { start, numTokens, matched } = request;
    const numAside = reuses(request) ? Math.min(numTokens, Math.max(0, matched - start)) : 0;
    if (numAside > 0) parts.push({ request: row, firstToken, numTokens: numAside, position: start, page: 'aside' });
    if (numAside < numTokens) {
      const [first, position] = [firstToken + numAside, start + numAside];
      parts.push({ request: row, firstToken: first, numTokens: numTokens - numAside, position, page: 'own' });
    }
    firstToken += numTokens;
  }
  return parts;
}

/** Cuts parts into runs of neighbours of one kind: tokens of a dispatch lie behind one another. */
export function runsOf(parts: readonly StepPart[], kindOf: (part: StepPart) => unknown): StepPart[][] {
  const runs: StepPart[][] = [];
  let kind: unknown;
  for (const part of parts) {
    const own = kindOf(part);
    if (runs.length > 0 && own === kind) runs[runs.length - 1].push(part);
    else runs.push([part]);
    kind = own;
  }
  return runs;
}
