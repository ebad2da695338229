import type { BufferConfig } from '../config/buffer-config.ts';
import type { AttentionLayerConfig, LayerConfig, SsmLayerConfig } from '../config/layer-config.ts';
import { type ReusePolicy, resolveReusePolicy } from '../reuse/reuse-policy.ts';
import type { BytesByPolicy, LayerOrigin, PresetSaving } from './model-preset.ts';
import type { AttentionPart, LayerPart, ModelShape, RecurrentPart } from './model-shape.ts';
import type { ResolvedPresetOptions } from './preset-options.ts';
import { replaySaving } from './replay-saving.ts';
import type { SplitPolicies } from './split-policies.ts';
import { type WindowedLayer, windowSaving } from './window-saving.ts';

/**
 * Where the parts of a model lie in the layers of a cache config. The first part of a model layer has that layer's index as its
 * id; a second part has the index plus the number of layers, so that ids stay unique and both are found without a table.
 */
export function originsOf(shape: ModelShape): readonly LayerOrigin[] {
  const taken = new Set<number>();
  return shape.parts.map(({ modelLayer, part }) => {
    const layerId = taken.has(modelLayer) ? shape.numModelLayers + modelLayer : modelLayer;
    taken.add(layerId);
    return { layerId, modelLayer, part };
  });
}

/** The layer of each part, in the same order as `origins`. */
export function layersOf(
  shape: ModelShape,
  origins: readonly LayerOrigin[],
  options: ResolvedPresetOptions,
  policies: SplitPolicies,
): readonly LayerConfig[] {
  return shape.parts.map((part, index) =>
    part.kind === 'attention'
      ? attentionLayer(part, origins[index].layerId, options, policies)
      : recurrentLayer(part, origins[index].layerId, options, policies),
  );
}

function attentionLayer(
  part: AttentionPart,
  layerId: number,
  options: ResolvedPresetOptions,
  policies: SplitPolicies,
): AttentionLayerConfig {
  const { rows, windowSize, sparsityGroup } = part;
  return {
    type: 'attention',
    layerId,
    buffers: rows.map(({ role, bytes }) => ({ role, size: bytes * options.tokensPerBlock })),
    ...(windowSize === undefined ? {} : { slidingWindowSize: windowSize }),
    ...(sparsityGroup === undefined ? {} : { sparsityGroup }),
    ...(windowSize !== undefined && policies.windowsOptional ? { reusePolicy: 'optional' } : {}),
  };
}

function recurrentLayer(
  part: RecurrentPart,
  layerId: number,
  options: ResolvedPresetOptions,
  policies: SplitPolicies,
): SsmLayerConfig {
  const buffers: BufferConfig[] = part.states.map(({ role, bytes }) => ({ role, size: bytes }));
  if (options.replayTokens > 0) {
    for (const { role, bytes } of part.replayRows) {
      const size = bytes * options.replayTokens;
      buffers.push(policies.ringsPrivate ? { role, size, reusePolicy: 'private' } : { role, size });
    }
  }
  return { type: 'ssm', layerId, buffers };
}

/** Adds up the sizes of all layers of one type by the policy of each buffer. */
export function bytesByPolicy(layers: readonly LayerConfig[], type: LayerConfig['type']): BytesByPolicy {
  const sums: Record<ReusePolicy, number> = { required: 0, optional: 0, private: 0 };
  for (const layer of layers) {
    if (layer.type !== type) continue;
    for (const { size, reusePolicy } of layer.buffers) sums[resolveReusePolicy(reusePolicy, layer.reusePolicy)] += size;
  }
  return sums;
}

/** What the policies are worth, one entry for each kind of buffer that is not required. */
export function savingsOf(
  shape: ModelShape,
  origins: readonly LayerOrigin[],
  options: ResolvedPresetOptions,
  policies: SplitPolicies,
): readonly PresetSaving[] {
  const savings: PresetSaving[] = [];
  const placed = shape.parts.map((part, index) => ({ part, origin: origins[index] }));
  if (policies.windowsOptional) {
    savings.push(windowSaving(placed.filter(isWindowed), options.tokensPerBlock));
  }
  if (policies.ringsPrivate) {
    savings.push(replaySaving(placed.filter(hasRing), options.replayTokens));
  }
  return savings;
}

function isWindowed(layer: { part: LayerPart; origin: LayerOrigin }): layer is WindowedLayer {
  return layer.part.kind === 'attention' && layer.part.windowSize !== undefined;
}

function hasRing(layer: { part: LayerPart; origin: LayerOrigin }): layer is { part: RecurrentPart; origin: LayerOrigin } {
  return layer.part.kind === 'recurrent' && layer.part.replayRows.length > 0;
}
