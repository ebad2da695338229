import { settled } from './assertions.ts';

/** One thing that every plugin of a kind does, as a sentence and as the code that finds out. */
export interface ConformancePromise<Harness> {
  /** A sentence whose subject is the plugin: "gives back what was stored". */
  readonly name: string;
  /** The flag of `supports` without which the promise is not given. Left out: it is, always. */
  readonly flag?: string;
  /** The optional part of the harness without which nobody can find out. */
  readonly needs?: keyof Harness & string;
  /** Opens what it needs and lets go of it. Rejects when the promise is not kept. */
  run(harness: Harness): Promise<void>;
}

/** What every harness may say. */
export interface SuiteHarness {
  /** Milliseconds after which a call that does not settle counts as hanging. Default 10 000. */
  readonly patienceMs?: number;
}

/** All promises of one kind of plugin. */
export interface Suite<Harness extends SuiteHarness> {
  /** "page store" */
  readonly kind: string;
  readonly promises: readonly ConformancePromise<Harness>[];
  /** What the plugin of a harness says of itself. */
  supports(harness: Harness): Promise<object>;
}

export const DEFAULT_PATIENCE_MS = 10_000;

/** What came of one promise. */
export type Verdict =
  | { readonly promise: string; readonly outcome: 'kept' }
  | { readonly promise: string; readonly outcome: 'skipped'; readonly reason: string }
  | { readonly promise: string; readonly outcome: 'broken'; readonly error: unknown };

/** Why a promise is not looked at, or undefined when it is. */
export async function reasonToSkip<Harness extends SuiteHarness>(
  suite: Suite<Harness>,
  promise: ConformancePromise<Harness>,
  harness: Harness,
): Promise<string | undefined> {
  const { flag, needs } = promise;
  if (flag !== undefined && !(await suite.supports(harness))[flag as keyof object]) return `supports.${flag} is false`;
  if (needs !== undefined && harness[needs] === undefined) return `the harness has no ${needs}`;
  return undefined;
}

/** Finds out about one promise. Never rejects. */
export async function provePromise<Harness extends SuiteHarness>(
  suite: Suite<Harness>,
  promise: ConformancePromise<Harness>,
  harness: Harness,
): Promise<Verdict> {
  try {
    const reason = await reasonToSkip(suite, promise, harness);
    if (reason !== undefined) return { promise: promise.name, outcome: 'skipped', reason };
    // Promises wait for each call by themselves; this is for a plugin that hangs where nobody would expect it.
    await settled(promise.run(harness), 6 * (harness.patienceMs ?? DEFAULT_PATIENCE_MS), promise.name);
    return { promise: promise.name, outcome: 'kept' };
  } catch (error) {
    return { promise: promise.name, outcome: 'broken', error };
  }
}

/** Finds out about all promises of a suite, one after the other, without a test runner. */
export async function prove<Harness extends SuiteHarness>(suite: Suite<Harness>, harness: Harness): Promise<Verdict[]> {
  const verdicts: Verdict[] = [];
  for (const promise of suite.promises) verdicts.push(await provePromise(suite, promise, harness));
  return verdicts;
}
