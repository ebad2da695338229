import fc from 'fast-check';

/** A way for a manager to live through random operations, and what must be so all the time. */
export interface RandomRun {
  readonly sentence: string;
  /** What fast-check tries. `tell` is called for each operation. */
  property(tell: () => void): fc.IAsyncProperty<unknown>;
}

/** Milliseconds for so many runs: far more than they take, as a busy machine is no failure. */
export function patience(numRuns: number): number {
  return 60_000 + numRuns * 1000;
}

/** Tries `numRuns` lives. A failure is made as small as it gets, and told with its seed. */
export async function tryRuns(
  { property }: RandomRun,
  numRuns: number,
  { seed, tell = () => {} }: { seed?: number; tell?: () => void } = {},
): Promise<void> {
  await fc.assert(property(tell), { numRuns, seed });
}
