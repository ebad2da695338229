import { firstLiveToken, type ReplayPlan, type StepRequest, usualReplay } from '@bufferwise/adapter-kit';
import type { GroupReuseStatus } from '@bufferwise/cache-manager';
import type { LayerConfig, LayerGroupId } from '@bufferwise/core-policy';
import type { StorageLayout } from '@bufferwise/scratch-allocator';

/** The groups of a consumer's layers, one for each layer. Bound layouts have no split layer of its. */
function groupsOf(layout: StorageLayout, layers: readonly LayerConfig[]): ReadonlySet<LayerGroupId> {
  return new Set(layers.map(({ layerId }) => layout.lifecycles.getLayerGroupId(layerId)));
}

/** The usual plan for the groups of some layers: those of other consumers are theirs to plan. */
export function planLayers(
  layout: StorageLayout,
  layers: readonly LayerConfig[],
  reuseStatus: readonly GroupReuseStatus[],
  matched: number,
): ReplayPlan {
  const own = groupsOf(layout, layers);
  return usualReplay(
    reuseStatus.filter(({ groupId }) => own.has(groupId)),
    matched,
    (groupId) => firstLiveToken(layout.lifecycles.get(groupId), matched, layout.tokensPerBlock),
  );
}

/** Tokens at the beginning of a request's step that a group has already: lent pages, not to be written. */
export function tokensHeld({ start, numTokens, matched, reusedGroups }: StepRequest, groupId: LayerGroupId): number {
  return reusedGroups.has(groupId) ? Math.min(numTokens, Math.max(0, matched - start)) : 0;
}
