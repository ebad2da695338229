import { firstLiveToken, type ReplayPlan } from '@bufferwise/adapter-kit';
import type { GroupReuseStatus, KvCacheManager } from '@bufferwise/cache-manager';
import type { LayerGroupId } from '@bufferwise/core-policy';
import type { ModelDescription } from '../description/model-description.ts';
import type { Lack, LayerHistory } from './catch-up-start.ts';
import type { ReuseModel } from './open-reuse.ts';

/** How far a layer looks back. */
export type LookBack =
  | {
      readonly kind: 'attention';
      readonly layerId: number;
      /** Tokens that a query sees, itself included; null = all. */
      readonly windowSize: number | null;
    }
  | {
      readonly kind: 'ssm';
      readonly layerId: number;
      /** Inputs that its convolution keeps. */
      readonly tailTokens: number;
    };

/** How far the layers of a model look back, bottom layer first. */
export function lookBacks({ layers }: Pick<ModelDescription, 'layers'>): LookBack[] {
  return layers.map(({ mixer }, layerId) =>
    mixer.kind === 'mamba2'
      ? { kind: 'ssm', layerId, tailTokens: mixer.convWidth - 1 }
      : { kind: 'attention', layerId, windowSize: mixer.windowSize ?? null },
  );
}

/** What the layers of a model remember, and in which groups of a manager. */
export class ModelMemory implements ReuseModel {
  readonly #manager: KvCacheManager;
  readonly #layers: readonly LookBack[];
  readonly #consumers: Pick<ReuseModel, 'planReplay'>;

  /**
   * @param layers bottom layer first
   * @param consumers plan for all layers of the model
   */
  constructor(manager: KvCacheManager, layers: readonly LookBack[], consumers: Pick<ReuseModel, 'planReplay'>) {
    this.#manager = manager;
    this.#layers = layers;
    this.#consumers = consumers;
  }

  planReplay(reuseStatus: readonly GroupReuseStatus[], matched: number): ReplayPlan {
    return this.#consumers.planReplay(reuseStatus, matched);
  }

  layerHistories(matched: number, missing: ReadonlySet<LayerGroupId>): readonly LayerHistory[] {
    const { bufferGrouping, lifecycles, layout } = this.#manager;
    return this.#layers.map((layer) => {
      const groups = bufferGrouping.flatMap((buffers, groupId) =>
        buffers.filter(({ layerId }) => layerId === layer.layerId).map(({ role }) => ({ role, id: groupId as LayerGroupId })),
      );
      if (layer.kind === 'ssm') {
        const lackOf = (isPart: (role: string) => boolean): Lack => {
          const lacking = groups.filter(({ id, role }) => isPart(role) && missing.has(id));
          if (lacking.length === 0) return 'none';
          return lacking.some(({ id }) => lifecycles.get(id).policy === 'private') ? 'always' : 'later';
        };
        const tail = lackOf(isTail);
        return { kind: 'ssm', state: lackOf((role) => !isTail(role) && !isRing(role)), tail, tailTokens: layer.tailTokens };
      }
      const lacking = groups.filter(({ id }) => missing.has(id));
      const liveFrom = lacking.map(({ id }) => firstLiveToken(lifecycles.get(id), matched, layout.tokensPerBlock));
      return {
        kind: 'attention',
        windowSize: layer.windowSize,
        missing: lacking.length > 0,
        liveFrom: Math.min(matched, ...liveFrom),
      };
    });
  }
}

/** The last inputs of a convolution. */
const isTail = (role: string) => role === 'conv_state';

/** Inputs from which state could be computed anew: a request never lacks them. */
export const isRing = (role: string): boolean => role.startsWith('replay');
