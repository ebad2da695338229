import { firstLiveToken, type ReplayPlan, usualReplay } from '@bufferwise/adapter-kit';
import type { GroupReuseStatus, KvCache, KvCacheManager } from '@bufferwise/cache-manager';
import type { CacheConfig, LayerGroupId } from '@bufferwise/core-policy';
import { isRing, type LookBack, ModelMemory } from './model-memory.ts';
import { type OpenedReuse, ReuseOpener } from './open-reuse.ts';

/** A request that begins as in an engine: with pages of others, and where these do not suffice, with a second run over a part of the match. */
export interface SimulatedRequest {
  /** Its pages. */
  readonly cache: KvCache;
  /** Tokens at which it continues. */
  readonly matched: number;
  /** Tokens that the second run still has to compute; 0 when there is none, or no more. The request itself goes on behind it. */
  readonly remainingTokens: number;
  /** Takes it onto the device. False: there is no room now. */
  resume(): Promise<boolean>;
  /** Makes the second run `numTokens` longer, at most `remainingTokens`. False: there is no room now, and nothing has changed. */
  runAgain(numTokens: number): boolean;
  close(): void;
}

/** Decides how requests begin in the way of the engine, for a manager behind which nothing is computed. */
export class ReuseSimulation {
  readonly #opener: ReuseOpener;

  /**
   * Buffers are told by role. Rings, `replay…`, are never needed again. State and `conv_state` only the whole prefix brings back, as how
   * wide the convolution is does not stand in a config. Attention needs what is live.
   *
   * @param config of the manager
   */
  constructor(manager: KvCacheManager, config: CacheConfig) {
    this.#opener = new ReuseOpener(manager, memoryOf(manager, config), () => {});
  }

  /**
   * Looks a request up. Nothing is allocated.
   *
   * @param tokens of the prompt; the last one is always computed
   * @param lookup false: it begins with nothing
   */
  open(tokens: Uint32Array, lookup = true): SimulatedRequest {
    const known = tokens.subarray(0, tokens.length - 1);
    return simulated(this.#opener.open({ tokens: known, lookup, publish: true, expectedPromptLength: tokens.length }));
  }
}

function simulated(opened: OpenedReuse): SimulatedRequest {
  return {
    cache: opened.cache,
    matched: opened.matched,
    get remainingTokens() {
      return opened.catchUp?.remaining ?? 0;
    },
    resume: () => opened.resume(),
    runAgain(numTokens) {
      if (opened.catchUp === null || !opened.catchUp.prepare(numTokens)) return false;
      opened.catchUp.submitted();
      return true;
    },
    close: () => opened.close(),
  };
}

function memoryOf(manager: KvCacheManager, config: CacheConfig): ModelMemory {
  const layers = config.layers.filter(({ buffers }) => buffers.length > 0);
  const lookBacks = layers.map(
    (layer): LookBack =>
      layer.type === 'ssm'
        ? { kind: 'ssm', layerId: layer.layerId, tailTokens: Number.POSITIVE_INFINITY }
        : { kind: 'attention', layerId: layer.layerId, windowSize: layer.slidingWindowSize ?? null },
  );
  const isRecurrent = layers.some(({ type }) => type === 'ssm');
  const isRingGroup = manager.bufferGrouping.map((buffers) => buffers.every(({ role }) => isRing(role)));
  const neededFrom = (groupId: LayerGroupId, matched: number) =>
    isRingGroup[groupId] ? matched : firstLiveToken(manager.lifecycles.get(groupId), matched, manager.layout.tokensPerBlock);
  const planReplay = (status: readonly GroupReuseStatus[], matched: number): ReplayPlan => {
    const plan = usualReplay(status, matched, (groupId) => neededFrom(groupId, matched));
    return isRecurrent && plan.from < matched ? { ...plan, from: 0 } : plan;
  };
  return new ModelMemory(manager, lookBacks, { planReplay });
}
