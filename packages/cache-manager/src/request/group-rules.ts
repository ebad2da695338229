import {
  type Lifecycle,
  type LifecycleId,
  type LifecycleRegistry,
  type ReusePolicy,
  reuseEndpoint,
  staleBegin,
  staleEnd,
} from '@bufferwise/core-policy';

/** What the manager asks of one group on every step: its lifecycle, laid out for quick answers. Immutable. */
export class GroupRules {
  readonly id: LifecycleId;
  readonly lifecycle: Lifecycle;
  readonly kind: Lifecycle['kind'];
  readonly policy: ReusePolicy;
  readonly poolGroup: number;
  readonly tokensPerBlock: number;
  /** Tokens, or null: attention that sees everything, or state. */
  readonly windowSize: number | null;
  readonly numSinkBlocks: number;
  readonly #minSnapshot: boolean;

  constructor(options: {
    id: LifecycleId;
    lifecycle: Lifecycle;
    poolGroup: number;
    tokensPerBlock: number;
    minSnapshot: boolean;
  }) {
    this.id = options.id;
    this.lifecycle = options.lifecycle;
    this.kind = options.lifecycle.kind;
    this.policy = options.lifecycle.policy;
    this.poolGroup = options.poolGroup;
    this.tokensPerBlock = options.tokensPerBlock;
    this.windowSize = options.lifecycle.kind === 'attention' ? options.lifecycle.windowSize : null;
    this.numSinkBlocks = options.lifecycle.kind === 'attention' ? options.lifecycle.numSinkBlocks : 0;
    this.#minSnapshot = options.minSnapshot;
  }

  /** First block after the sinks that is stale at `numTokens`. */
  staleBegin(numTokens: number): number {
    return staleBegin(this.lifecycle, numTokens, this.tokensPerBlock);
  }

  /** First block of the live window at `numTokens`. */
  staleEnd(numTokens: number): number {
    return staleEnd(this.lifecycle, numTokens, this.tokensPerBlock);
  }

  /** Whether a later token still reads the block, given `numTokens` tokens. */
  isLive(ordinal: number, numTokens: number): boolean {
    return ordinal < this.staleBegin(numTokens) || ordinal >= this.staleEnd(numTokens);
  }

  /**
   * The token count whose live blocks a request keeps when it has written `historyLength` tokens: an optional window must
   * also serve its last whole block when only what a match needs is published.
   */
  keptAt(historyLength: number): number {
    return this.#minSnapshot && this.windowSize !== null
      ? reuseEndpoint(this.lifecycle, historyLength, this.tokensPerBlock)
      : historyLength;
  }

  /** Whether a match can never pass the block without its page of this group. */
  everyMatchNeeds(ordinal: number): boolean {
    if (this.policy !== 'required' || this.kind !== 'attention') return false;
    return this.windowSize === null || ordinal < this.numSinkBlocks;
  }
}

/** The rules of every group of a config; index = group id. */
export function groupRules(options: {
  lifecycles: LifecycleRegistry;
  poolGroupOf: (id: LifecycleId) => number;
  tokensPerBlock: number;
  minSnapshot: boolean;
}): GroupRules[] {
  const { lifecycles, poolGroupOf, tokensPerBlock, minSnapshot } = options;
  return Array.from({ length: lifecycles.size }, (_, index) => {
    const id = index as LifecycleId;
    return new GroupRules({ id, lifecycle: lifecycles.get(id), poolGroup: poolGroupOf(id), tokensPerBlock, minSnapshot });
  });
}
