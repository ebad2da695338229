import type { TraceRequest } from '@bufferwise-internal/request-traces';
import { type BufferClass, byLifecycle, policiesFlag } from './buffer-classes.ts';
import { type Choice, choicesToTry, together } from './choices.ts';
import { reasonsOf } from './reasons.ts';
import { type AdviceOptions, type ChoiceFigures, Trials } from './trials.ts';

/** Which policies to choose for a model, as found by serving a trace with each choice. Plain data. */
export interface Advice {
  readonly memory: number;
  readonly tokensPerBlock: number;
  readonly requests: number;
  readonly promptTokens: number;
  /** Tokens of prompt and answer of a mean request. */
  readonly meanLength: number;
  /** Requests that ran at a time, at most, and tokens between the snapshots of a prompt. */
  readonly maxRunning: number;
  readonly snapshotEvery: number;
  readonly classes: readonly BufferClass[];
  /** Everything required first. */
  readonly choices: readonly ChoiceFigures[];
  /** Index of the best of `choices`. */
  readonly best: number;
  /** The best choice for `--policies`. */
  readonly policies: string;
  /** One a lifecycle, in sentences. */
  readonly reasons: readonly string[];
  /** What the best choice has less, or more where it is negative, than everything required. */
  readonly against: { readonly computedTokens: number; readonly keptBytes: number; readonly sharedBytesPerToken: number };
  readonly warnings: readonly string[];
}

export interface AdviceRun {
  readonly signal: AbortSignal;
  /** Told how far the trace is with the choice that is being tried. */
  progress(tried: number, toTry: number, served: number): void;
}

/** What is less than this part of all prompt tokens says nothing: then the choice that leaves fewer bytes for others is better. */
const TOLERANCE = 0.002;

/**
 * Serves a trace with every choice of policies, one class of buffers or one lifecycle at a time, and then with the best of each lifecycle
 * together.
 *
 * @param requests at least one
 */
export async function makeAdvice(requests: readonly TraceRequest[], options: AdviceOptions, run: AdviceRun): Promise<Advice> {
  const trials = new Trials(requests, options);
  const { classes, meanLength, maxRunning, snapshotEvery } = trials;
  const promptTokens = requests.reduce((sum, { promptLength }) => sum + promptLength, 0);
  const toTry = choicesToTry(classes);
  const numTrials = trials.numFor(toTry);
  const tryOut = (choice: Choice) =>
    trials.run(choice, {
      signal: run.signal,
      progress: (served) => run.progress(trials.numRun, Math.max(numTrials, trials.numRun + 1), served),
    });
  const choices: ChoiceFigures[] = [];
  for (const choice of toTry) choices.push(await tryOut(choice));
  const [whole] = choices;
  const bestOf = (some: readonly ChoiceFigures[]) =>
    some.reduce((best, each) => (compare(each, best, promptTokens) < 0 ? each : best));
  const changes = [...byLifecycle(classes).keys()]
    .map((lifecycle) => bestOf([whole, ...choices.filter((each) => each.lifecycle === lifecycle)]))
    .filter((each) => each !== whole);
  if (changes.length > 1) choices.push(await tryOut(together(changes)));
  const best = bestOf(choices);
  return {
    memory: options.memory,
    tokensPerBlock: options.tokensPerBlock,
    requests: requests.length,
    promptTokens,
    meanLength,
    maxRunning,
    snapshotEvery,
    classes,
    choices,
    best: choices.indexOf(best),
    policies: policiesFlag(classes, best.policies),
    reasons: reasonsOf(classes, choices, best, promptTokens),
    against: {
      computedTokens: whole.computedTokens - best.computedTokens,
      keptBytes: whole.keptBytes - best.keptBytes,
      sharedBytesPerToken: whole.sharedBytesPerToken - best.sharedBytesPerToken,
    },
    warnings: warningsOf(trials, choices, requests.length),
  };
}

/** Below 0 when `a` is the better choice. */
function compare(a: ChoiceFigures, b: ChoiceFigures, promptTokens: number): number {
  if (a.unserved !== b.unserved) return a.unserved - b.unserved;
  const tokens = a.computedTokens - b.computedTokens;
  if (Math.abs(tokens) > TOLERANCE * promptTokens) return tokens;
  return a.sharedBytesPerToken - b.sharedBytesPerToken || numChanged(a) - numChanged(b);
}

const numChanged = ({ policies }: Choice) => Object.keys(policies).length;

function warningsOf({ isMemoryRaised }: Trials, choices: readonly ChoiceFigures[], numRequests: number): string[] {
  const warnings: string[] = [];
  if (isMemoryRaised) warnings.push('The memory is too small for the longest request, so the figures are of more.');
  const unserved = Math.max(...choices.map((each) => each.unserved));
  if (unserved > 0)
    warnings.push(`Up to ${unserved} of ${numRequests} requests did not fit or had their answer cut: take more memory.`);
  return warnings;
}
