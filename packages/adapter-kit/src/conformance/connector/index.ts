import { describeSuite } from '../describe-suite.ts';
import type { KvConnectorHarness } from './harness.ts';
import { kvConnectorSuite } from './suite.ts';

export { BrokenPromiseError } from '../assertions.ts';
export { type ConformancePromise, prove, type Suite, type SuiteHarness, type Verdict } from '../suite.ts';
export type { KvConnectorHarness } from './harness.ts';
export { kvConnectorSuite };

/**
 * Tests of vitest that prove a connector.
 *
 * @param name of the connector, for the titles of the tests
 */
export function describeKvConnector(name: string, harness: KvConnectorHarness): void {
  describeSuite(kvConnectorSuite, name, harness);
}
