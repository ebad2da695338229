import type { AttentionDescription } from '../../description/attention.ts';
import {
  type ArchitectureSource,
  type Describe,
  readAttentionBiases,
  readBase,
  readFeedForwards,
  readHeads,
  readMamba2,
  readRotary,
} from './common.ts';

/**
 * Granite 4 without experts: Mamba-2 where a layer has no key and value heads, full attention where it has. Positions are told
 * unless the file says that rotary positions were not trained.
 */
export const describeGraniteHybrid: Describe = (source) => {
  const { numLayers, ...base } = readBase(source, 'granitehybrid');
  const { fields } = source;
  const kvHeads = fields.wholePerLayer('attention.head_count_kv', numLayers, { least: 0, most: 4096 });
  if (new Set(kvHeads.filter((count) => count > 0)).size > 1)
    fields.note('unsupported', 'attention.head_count_kv', 'differs between attention layers');
  const feedForwards = readFeedForwards(source, numLayers, 'silu');
  return {
    ...base,
    embeddingScale: readScale(source, 'embedding_scale') ?? 1,
    residualScale: readScale(source, 'residual_scale') ?? 1,
    logitScale: 1 / (readScale(source, 'logit_scale') ?? 1),
    layers: kvHeads.map((numKvHeads, index) => ({
      mixer: numKvHeads === 0 ? readMamba2(source) : readAttention(source, base.width, numKvHeads, index),
      feedForward: feedForwards[index],
      normBefore: true,
      normAfter: false,
    })),
  };
};

function readAttention(source: ArchitectureSource, width: number, numKvHeads: number, index: number): AttentionDescription {
  const heads = readHeads(source, width, numKvHeads);
  const rotary = readRotary(source, heads.headDim, 'interleaved');
  return {
    kind: 'attention',
    ...heads,
    scale: readScale(source, 'attention.scale') ?? 1 / Math.sqrt(heads.headDim),
    rotary: source.fields.flag('rope.scaling.finetuned', true) ? rotary : undefined,
    queryKeyNorm: 'none',
    ...readAttentionBiases(source, index),
  };
}

/** A scale of the file; undefined where it is absent or 0, which says the same. */
function readScale({ fields }: ArchitectureSource, key: string): number | undefined {
  const scale = fields.real(key, { least: 0, most: 1e6, fallback: 0 });
  return scale === 0 ? undefined : scale;
}
