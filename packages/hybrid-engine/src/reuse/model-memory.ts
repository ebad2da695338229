import { firstLiveToken, type ReplayPlan } from '@bufferwise/adapter-kit';
import type { GroupReuseStatus, KvCacheManager } from '@bufferwise/cache-manager';
import type { LayerGroupId } from '@bufferwise/core-policy';
import type { ModelDescription } from '../description/model-description.ts';
import type { Lack, LayerHistory } from './catch-up-start.ts';
import type { ReuseModel } from './open-reuse.ts';

/** What the layers of a model remember, and in which groups of a manager. */
export class ModelMemory implements ReuseModel {
  readonly #manager: KvCacheManager;
  readonly #model: ModelDescription;
  readonly #consumers: Pick<ReuseModel, 'planReplay'>;

  /** @param consumers plan for all layers of the model */
  constructor(manager: KvCacheManager, model: ModelDescription, consumers: Pick<ReuseModel, 'planReplay'>) {
    this.#manager = manager;
    this.#model = model;
    this.#consumers = consumers;
  }

  planReplay(reuseStatus: readonly GroupReuseStatus[], matched: number): ReplayPlan {
    return this.#consumers.planReplay(reuseStatus, matched);
  }

  layerHistories(matched: number, missing: ReadonlySet<LayerGroupId>): readonly LayerHistory[] {
    const { bufferGrouping, lifecycles, layout } = this.#manager;
    return this.#model.layers.map(({ mixer }, layerId) => {
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
}
