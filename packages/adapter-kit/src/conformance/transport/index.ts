import { describeSuite } from '../describe-suite.ts';
import type { PageTransportHarness } from './harness.ts';
import { pageTransportSuite } from './suite.ts';

export { BrokenPromiseError } from '../assertions.ts';
export { type ConformancePromise, prove, type Suite, type SuiteHarness, type Verdict } from '../suite.ts';
export type { PageTransportHarness } from './harness.ts';
export { pageTransportSuite };

/**
 * Tests of vitest that prove a transport.
 *
 * @param name of the transport, for the titles of the tests
 */
export function describePageTransport(name: string, harness: PageTransportHarness): void {
  describeSuite(pageTransportSuite, name, harness);
}
