/** What a task asks of a step. */
export interface Demand {
  /** Tokens that it would have in a step with room for `most`. */
  nextTokens(most: number): number;
  /** Whether one token is all that it waits for. */
  readonly decoding: boolean;
}

/**
 * Shares the tokens of a step out: first to those that wait for one token, as they are the cheapest to serve and the first to be
 * missed, then to prompts, each in the order given. A step is full, or nobody has anything left to compute.
 *
 * @param demands   in the order in which they go first
 * @param maxTokens tokens of the step, at least 1
 * @returns tokens of each, 0 for those that are not in the step
 */
export function shareTokens(demands: readonly Demand[], maxTokens: number): number[] {
  const shares = new Array<number>(demands.length).fill(0);
  let left = maxTokens;
  for (const decoding of [true, false]) {
    demands.forEach((demand, i) => {
      if (demand.decoding !== decoding || left === 0) return;
      shares[i] = demand.nextTokens(left);
      left -= shares[i];
    });
  }
  return shares;
}
