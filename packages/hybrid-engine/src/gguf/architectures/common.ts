import type { AttentionDescription } from '../../description/attention.ts';
import type { FeedForwardDescription } from '../../description/feed-forward.ts';
import type { Mamba2Description } from '../../description/mamba2.ts';
import type { ModelArchitecture, ModelDescription } from '../../description/model-description.ts';
import type { RotaryDescription } from '../../description/rotary.ts';
import type { MetadataFields } from '../metadata-fields.ts';

/** What a description is made from. */
export interface ArchitectureSource {
  readonly fields: MetadataFields;
  /** Rows of `token_embd.weight`. */
  readonly vocabSize: number;
  /** Whether the file has a tensor of that name. */
  hasTensor(name: string): boolean;
}

/** Makes the description of one architecture; faults are noted in the fields, and what comes back then is not used. */
export type Describe = (source: ArchitectureSource) => ModelDescription;

const SIZE = { least: 1, most: 2 ** 20 };

/** What all architectures say the same way, and the scales of those that have none. */
export function readBase(
  { fields, vocabSize, hasTensor }: ArchitectureSource,
  architecture: ModelArchitecture,
): Omit<ModelDescription, 'layers'> & { numLayers: number } {
  fields.refuse('expert_count', 'mixtures of experts are not run');
  return {
    architecture,
    vocabSize,
    width: fields.whole('embedding_length', SIZE),
    contextLength: fields.has('context_length') ? fields.whole('context_length', { least: 1, most: 2 ** 31 }) : undefined,
    normEps: fields.real('attention.layer_norm_rms_epsilon', { least: 0, most: 0.1 }),
    embeddingScale: 1,
    residualScale: 1,
    logitScale: 1,
    tiedOutput: !hasTensor('output.weight'),
    numLayers: fields.whole('block_count', { least: 1, most: 4096 }),
  };
}

/** Heads of attention, of a model in which all attention layers have the same. */
export interface Heads {
  numHeads: number;
  numKvHeads: number;
  headDim: number;
}

/** @param numKvHeads where it is known already, because it stands layer by layer */
export function readHeads({ fields }: ArchitectureSource, width: number, numKvHeads?: number): Heads {
  const numHeads = fields.whole('attention.head_count', { least: 1, most: 4096 });
  const kvHeads = numKvHeads ?? fields.whole('attention.head_count_kv', { least: 1, most: 4096, fallback: numHeads });
  if (numHeads % kvHeads > 0) fields.note('conflict', 'attention.head_count_kv', `${kvHeads} must divide ${numHeads} heads`);
  const evenly = fields.has('attention.key_length') ? undefined : width / numHeads;
  const headDim = fields.whole('attention.key_length', { least: 1, most: 2 ** 14, fallback: evenly });
  const valueDim = fields.whole('attention.value_length', { least: 1, most: 2 ** 14, fallback: headDim });
  if (Math.abs(valueDim - headDim) > 0)
    fields.note('unsupported', 'attention.value_length', `${valueDim} differs from ${headDim} of keys`);
  return { numHeads, numKvHeads: kvHeads, headDim };
}

/** Rotary positions with the base `rope.freq_base`; linear stretching is taken, other kinds are refused. */
export function readRotary(
  { fields, hasTensor }: ArchitectureSource,
  headDim: number,
  pairs: RotaryDescription['pairs'],
  defaultBase = 10_000,
): RotaryDescription {
  const dimensions = fields.whole('rope.dimension_count', { least: 2, most: headDim, fallback: headDim });
  if (dimensions % 2 > 0) fields.note('range', 'rope.dimension_count', `must be even, is ${dimensions}`);
  const scaling = fields.text('rope.scaling.type', 'linear');
  if (scaling !== 'none' && scaling !== 'linear') fields.note('unsupported', 'rope.scaling.type', `is ${scaling}`);
  return {
    pairs,
    base: fields.real('rope.freq_base', { least: 1, most: 1e12, fallback: defaultBase }),
    dimensions,
    positionScale: scaling === 'linear' ? fields.real('rope.scaling.factor', { least: 1e-3, most: 1e6, fallback: 1 }) : 1,
    hasFactors: hasTensor('rope_freqs.weight'),
  };
}

/** The window, where layers have one. */
export function readWindow({ fields }: ArchitectureSource): number {
  return fields.whole('attention.sliding_window', { least: 1, most: 2 ** 31 });
}

/** Which projections of layer `index` have biases: no key says so, the file's tensors do. */
export function readAttentionBiases(
  { hasTensor }: ArchitectureSource,
  index: number,
): Pick<AttentionDescription, 'hasInputBias' | 'hasOutputBias'> {
  return { hasInputBias: hasTensor(`blk.${index}.attn_q.bias`), hasOutputBias: hasTensor(`blk.${index}.attn_output.bias`) };
}

/** The feed-forward network of each layer. */
export function readFeedForwards(
  { fields, hasTensor }: ArchitectureSource,
  numLayers: number,
  activation: FeedForwardDescription['activation'],
): readonly FeedForwardDescription[] {
  const sizes = fields.wholePerLayer('feed_forward_length', numLayers, SIZE);
  return sizes.map((hidden, index) => ({ hidden, activation, hasBias: hasTensor(`blk.${index}.ffn_up.bias`) }));
}

/** The Mamba-2 mixer that all recurrent layers of a model are. `ssm.time_step_rank` is the number of heads. */
export function readMamba2({ fields }: ArchitectureSource): Mamba2Description {
  const inner = fields.whole('ssm.inner_size', SIZE);
  const numHeads = fields.whole('ssm.time_step_rank', { least: 1, most: 4096 });
  const numGroups = fields.whole('ssm.group_count', { least: 1, most: 4096 });
  if (inner % numHeads > 0) fields.note('conflict', 'ssm.time_step_rank', `${numHeads} heads must divide ${inner}`);
  if (numHeads % numGroups > 0) fields.note('conflict', 'ssm.group_count', `${numGroups} must divide ${numHeads} heads`);
  return {
    kind: 'mamba2',
    inner,
    numHeads,
    headDim: inner / numHeads,
    numGroups,
    stateSize: fields.whole('ssm.state_size', { least: 1, most: 4096 }),
    convWidth: fields.whole('ssm.conv_kernel', { least: 2, most: 16 }),
  };
}
