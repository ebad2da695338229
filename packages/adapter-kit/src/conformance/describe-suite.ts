import { describe, test } from 'vitest';
import { reasonToSkip, type Suite, type SuiteHarness } from './suite.ts';

/** Milliseconds: far more than any promise takes, as a busy machine is no failure. */
const TIMEOUT = 120_000;

/** Registers the promises of a suite as tests of vitest. A skipped one says why. */
export function describeSuite<Harness extends SuiteHarness>(suite: Suite<Harness>, name: string, harness: Harness): void {
  describe(`${name} as a ${suite.kind}`, () => {
    for (const promise of suite.promises) {
      test(promise.name, { timeout: TIMEOUT }, async (context) => {
        const reason = await reasonToSkip(suite, promise, harness);
        if (reason !== undefined) context.skip(reason);
        await promise.run(harness);
      });
    }
  });
}
