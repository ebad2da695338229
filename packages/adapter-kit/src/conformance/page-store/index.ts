import { describeSuite } from '../describe-suite.ts';
import type { PageStoreHarness } from './harness.ts';
import { pageStoreSuite } from './suite.ts';

export { BrokenPromiseError } from '../assertions.ts';
export { type ConformancePromise, prove, type Suite, type SuiteHarness, type Verdict } from '../suite.ts';
export type { PageStoreHarness } from './harness.ts';
export { pageStoreSuite };

/**
 * Tests of vitest that prove a store.
 *
 * @param name of the store, for the titles of the tests
 * @example describePageStore('file system', { create: () => createFileSystemStore(tempFolder()) });
 */
export function describePageStore(name: string, harness: PageStoreHarness): void {
  describeSuite(pageStoreSuite, name, harness);
}
