import type { GroupReuseStatus } from '@bufferwise/cache-manager';
import type { StorageLayout } from '@bufferwise/scratch-allocator';
import { AdapterError } from '../errors.ts';
import { checkSpecVersion } from '../plugin.ts';
import type { BindOptions, ConsumerAdapter, ConsumerStep, ReplayPlan } from './consumer-adapter.ts';

/**
 * A consumer whose steps are checked, so that no consumer has to: what an engine calls consumers through. `record` throws
 * {AdapterError} `step-refused` before `bind`, when rows and requests do not fit together, and when a step asks for what the consumer
 * does not support; nothing reaches the consumer then.
 *
 * @throws {AdapterError} `plugin-spec-version` on a consumer of another version
 */
export function checkedConsumer<Work>(consumer: ConsumerAdapter<Work>): ConsumerAdapter<Work> {
  checkSpecVersion(consumer);
  let bound: StorageLayout | undefined;
  return {
    specVersion: consumer.specVersion,
    name: consumer.name,
    supports: consumer.supports,
    layers: consumer.layers,
    bind(layout: StorageLayout, options?: BindOptions) {
      consumer.bind(layout, options);
      bound = layout;
    },
    planReplay(reuseStatus: readonly GroupReuseStatus[], matched: number): ReplayPlan {
      return consumer.planReplay(reuseStatus, matched);
    },
    record(step: ConsumerStep, work: Work) {
      checkStep(consumer, bound, step);
      consumer.record(step, work);
    },
    close: () => consumer.close(),
  };
}

function checkStep({ name, supports }: ConsumerAdapter<never>, bound: StorageLayout | undefined, step: ConsumerStep): void {
  if (bound === undefined) throw refused(name, 'it knows no layout yet; call `bind` first');
  if (step.pages.layout !== bound) throw refused(name, 'the tables are of another layout than the one that was bound');
  if (step.pages.numRequests !== step.requests.length)
    throw refused(name, `there are ${step.requests.length} requests and tables for ${step.pages.numRequests}`);
  step.requests.forEach(({ start, numTokens, matched }, i) => {
    if (!Number.isSafeInteger(start) || start < 0) throw refused(name, `request ${i} starts at ${start}, which is no position`);
    if (!Number.isSafeInteger(numTokens) || numTokens < 1)
      throw refused(name, `request ${i} has ${numTokens} tokens in it; at least 1`);
    const blocks = Math.ceil((start + numTokens) / bound.tokensPerBlock);
    if (blocks > step.pages.maxBlocks)
      throw refused(
        name,
        `request ${i} ends at token ${start + numTokens}, and rows have room for ${step.pages.maxBlocks} blocks`,
      );
    if (start < matched && !supports.replay)
      throw refused(
        name,
        `request ${i} gives tokens again from ${start} on, before its match at ${matched}, which this consumer does not support`,
      );
  });
}

function refused(name: string, why: string): AdapterError {
  return new AdapterError('step-refused', `${name} cannot do this step: ${why}`);
}
