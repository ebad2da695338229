import type { PageDevice } from '@bufferwise/cache-manager';
import type { LayerConfig } from '@bufferwise/core-policy';
import type { ConsumerAdapter, ConsumerStep } from '../../consumer/consumer-adapter.ts';
import type { SuiteHarness } from '../suite.ts';

/** A set of layers with policies that a consumer can do with. */
export interface ConsumerMix {
  /** For people: "keys private, state optional". */
  readonly name: string;
  readonly layers: readonly LayerConfig[];
}

/** What an author of a consumer tells the suite. */
export interface ConsumerHarness<Work = unknown> extends SuiteHarness {
  /** What the consumer is tried with. Together they show all that `supports` claims; `policyMixes` makes them out of one list of layers. */
  readonly mixes: readonly ConsumerMix[];
  /** A fresh consumer of the layers of a mix. */
  create(mix: ConsumerMix): ConsumerAdapter<Work> | Promise<ConsumerAdapter<Work>>;
  /** Closes the consumer and gives back what the harness made for it. Default: `consumer.close()`. */
  destroy?(consumer: ConsumerAdapter<Work>): void | Promise<void>;
  /**
   * Makes the work of a step, has the consumer record it, submits it, and answers with what each request put out: the same number of
   * values for each of its tokens, token after token.
   *
   * @param seeds for each request one word a token, from which its activations are made: equal seeds, equal activations. A seed stands
   *   for all tokens up to its own, so that pages of other prefixes are never right by chance
   */
  run(
    consumer: ConsumerAdapter<Work>,
    step: ConsumerStep,
    seeds: readonly Uint32Array[],
  ): readonly ArrayLike<number>[] | Promise<readonly ArrayLike<number>[]>;
  /** Where pages lie. Default: `HostPageDevice` with memory that nobody has cleared. */
  device?(): PageDevice | Promise<PageDevice>;
  /** How far two values may be apart, relative to the larger one of them and 1. Default 0: they are equal. */
  readonly tolerance?: number;
  /** Tokens of a block. Default 4. */
  readonly tokensPerBlock?: number;
  /**
   * Roles of a layer that mean nothing without each other, as numbers and their scales: the suite asks for no layout that gives them
   * several policies, whatever `supports.splitBuffers` says. Default: none.
   */
  readonly inseparable?: readonly (readonly string[])[];
}
