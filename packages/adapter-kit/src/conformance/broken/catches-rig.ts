import { expect, test } from 'vitest';
import { prove, type Suite, type SuiteHarness } from '../suite.ts';

/** A plugin that breaks one promise on purpose. */
export interface Broken<Harness> {
  /** What is wrong with it. */
  readonly fault: string;
  /** The promise that it is here for, by its name. */
  readonly breaks: string;
  /** Others that cannot be kept with such a fault either. Default: none. */
  readonly along?: readonly string[];
  readonly harness: Harness;
}

/** Proves a suite: it is content with what is right, and catches each fault by the promise it breaks, and all promises have a fault. */
export function testSuiteCatches<Harness extends SuiteHarness>(
  suite: Suite<Harness>,
  right: Harness,
  broken: readonly Broken<Harness>[],
): void {
  test(`a right ${suite.kind} keeps every promise, and none is skipped`, async () => {
    const verdicts = await prove(suite, right);
    expect(verdicts.filter(({ outcome }) => outcome !== 'kept')).toEqual([]);
  });

  test(`every promise of a ${suite.kind} has a plugin that breaks it`, () => {
    expect(broken.map(({ breaks }) => breaks).sort()).toEqual(
      expect.arrayContaining(suite.promises.map(({ name }) => name).sort()),
    );
  });

  test.each(broken.map((each) => [each.fault, each] as const))(
    `catches a ${suite.kind} that %s`,
    async (_, { breaks, along = [], harness }) => {
      const verdicts = await prove(suite, harness);
      const caught = verdicts.filter(({ outcome }) => outcome === 'broken');
      expect(
        caught.map(({ promise }) => promise).sort(),
        JSON.stringify(caught.map((each) => String('error' in each && each.error))),
      ).toEqual([breaks, ...along].sort());
    },
  );
}
