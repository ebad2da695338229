import type { ConsumerSupports } from '../../consumer/consumer-adapter.ts';
import { BrokenPromiseError } from '../assertions.ts';
import type { ConformancePromise } from '../suite.ts';
import type { ConsumerHarness, ConsumerMix } from './harness.ts';
import type { Tokens } from './sequence.ts';
import { ConsumerStage, type StageOptions } from './stage.ts';

export type ConsumerPromise = ConformancePromise<ConsumerHarness<unknown>>;

export interface Story {
  readonly name: string;
  readonly flag?: keyof ConsumerSupports;
  readonly options?: StageOptions;
  /** Mixes that it can be told of. Default: all. */
  readonly fits?: (mix: ConsumerMix) => boolean;
  tell(stage: ConsumerStage<unknown>): Promise<void>;
}

/** A promise that is looked at with every mix that fits. What breaks says with which. */
export function story({ name, flag, options = {}, fits = () => true, tell }: Story): ConsumerPromise {
  return {
    name,
    flag,
    async run(harness) {
      for (const mix of harness.mixes.filter(fits)) {
        try {
          await ConsumerStage.tell(harness, mix, options, tell);
        } catch (cause) {
          throw new BrokenPromiseError(`with ${mix.name}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
        }
      }
    },
  };
}

/** Tokens of a text that begins like no other. */
export function textOf(id: number, length: number): Tokens {
  return Array.from({ length }, (_, i) => 1000 * (id + 1) + ((i * 37) % 101));
}

export const hasWindow = ({ layers }: ConsumerMix) =>
  layers.some((layer) => layer.type === 'attention' && layer.slidingWindowSize !== undefined);
export const hasState = ({ layers }: ConsumerMix) => layers.some(({ type }) => type === 'ssm');
