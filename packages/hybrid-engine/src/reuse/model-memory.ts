import { firstLiveToken, type ReplayPlan, usualReplay } from '@bufferwise/adapter-kit';
import type { GroupReuseStatus, KvCacheManager } from '@bufferwise/cache-manager';
import type { LayerGroupId } from '@bufferwise/core-policy';
import type { Lack, LayerHistory } from './catch-up-start.ts';
import type { ReuseModel } from './open-reuse.ts';

/** What a layer's mixer looks back at. Tokens. */
export type MixerReach =
  | { readonly kind: 'attention'; readonly windowSize?: number }
  | { readonly kind: 'mamba2'; readonly convWidth: number };

/** What the layers of a model remember, and in which groups of a manager. */
export class ModelMemory implements ReuseModel {
  readonly #manager: KvCacheManager;
  readonly #mixers: readonly MixerReach[];

  /** @param mixers index = layer id, bottom layer first */
  constructor(manager: KvCacheManager, mixers: readonly MixerReach[]) {
    this.#manager = manager;
    this.#mixers = mixers;
  }

  planReplay(reuseStatus: readonly GroupReuseStatus[], matched: number): ReplayPlan {
    return usualReplay(reuseStatus, matched, (groupId) => this.#neededFrom(groupId, matched));
  }

  layerHistories(matched: number, missing: ReadonlySet<LayerGroupId>): readonly LayerHistory[] {
    const { bufferGrouping, lifecycles, layout } = this.#manager;
    return this.#mixers.map((mixer, layerId) => {
      const groups = bufferGrouping.flatMap((buffers, groupId) =>
        buffers.filter((buffer) => buffer.layerId === layerId).map(({ role }) => ({ role, id: groupId as LayerGroupId })),
      );
      if (mixer.kind === 'mamba2') {
        const lackOf = (name: string): Lack => {
          const group = groups.find(({ role }) => role === name);
          if (group === undefined || !missing.has(group.id)) return 'none';
          return lifecycles.get(group.id).policy === 'private' ? 'always' : 'later';
        };
        return { kind: 'ssm', state: lackOf('ssm_state'), tail: lackOf('conv_state'), tailTokens: mixer.convWidth - 1 };
      }
      const lacking = groups.filter(({ id }) => missing.has(id));
      const liveFrom = lacking.map(({ id }) => firstLiveToken(lifecycles.get(id), matched, layout.tokensPerBlock));
      return {
        kind: 'attention',
        windowSize: mixer.windowSize ?? null,
        missing: lacking.length > 0,
        liveFrom: Math.min(matched, ...liveFrom),
      };
    });
  }

  /** The first token whose inputs a group needs that holds nothing of the match. Rings of replay inputs need none: they are for what comes. */
  #neededFrom(groupId: LayerGroupId, matched: number): number {
    const { bufferGrouping, lifecycles, layout } = this.#manager;
    const lifecycle = lifecycles.get(groupId);
    if (lifecycle.kind === 'attention') return firstLiveToken(lifecycle, matched, layout.tokensPerBlock);
    const from = bufferGrouping[groupId].map(({ layerId, role }) => {
      const mixer = this.#mixers[layerId];
      if (role === 'ssm_state') return 0;
      return role === 'conv_state' && mixer.kind === 'mamba2' ? Math.max(0, matched - mixer.convWidth + 1) : matched;
    });
    return Math.min(matched, ...from);
  }
}
