import { describeSuite } from '../describe-suite.ts';
import type { Suite } from '../suite.ts';
import type { ConsumerHarness } from './harness.ts';
import { consumerSuite } from './suite.ts';

export { BrokenPromiseError } from '../assertions.ts';
export { type ConformancePromise, prove, type Suite, type SuiteHarness, type Verdict } from '../suite.ts';
export type { ConsumerHarness, ConsumerMix } from './harness.ts';
export { policyMixes } from './policy-mixes.ts';
export { consumerSuite };

/**
 * Tests of vitest that prove a consumer, on a real `KvCacheManager`: what comes out with reuse is what comes out without, for every mix of
 * policies, wherever a match ends, with evictions, suspensions, shared partial blocks, windows, scratch and beams in between.
 *
 * @param name of the consumer, for the titles of the tests
 */
export function describeConsumer<Work>(name: string, harness: ConsumerHarness<Work>): void {
  describeSuite(consumerSuite as Suite<ConsumerHarness<Work>>, name, harness);
}
