import type { AttentionDescription } from './attention.ts';
import { convolvedChannels, type Mamba2Description, projectedSize } from './mamba2.ts';
import type { LayerDescription, ModelDescription } from './model-description.ts';

/**
 * Every tensor that a model of this description has, with its shape, outermost first, in the order of computation. Names are
 * those of GGUF files; projections are `[out, in]`.
 */
export function describeTensors(model: ModelDescription): ReadonlyMap<string, readonly number[]> {
  const { width, vocabSize } = model;
  const shapes = new Map<string, readonly number[]>([['token_embd.weight', [vocabSize, width]]]);
  const rotary = model.layers.map(({ mixer }) => (mixer.kind === 'attention' ? mixer.rotary : undefined));
  const turned = rotary.find((each) => each?.hasFactors);
  if (turned !== undefined) shapes.set('rope_freqs.weight', [turned.dimensions / 2]);
  model.layers.forEach((layer, index) => {
    for (const [name, shape] of layerShapes(layer, width)) shapes.set(`blk.${index}.${name}`, shape);
  });
  shapes.set('output_norm.weight', [width]);
  if (!model.tiedOutput) shapes.set('output.weight', [vocabSize, width]);
  return shapes;
}

type Shapes = [string, number[]][];

function layerShapes({ mixer, feedForward, normBefore, normAfter }: LayerDescription, width: number): Shapes {
  const shapes: Shapes = [];
  const norm = (name: string, stands: boolean) => stands && shapes.push([name, [width]]);
  norm('attn_norm.weight', normBefore);
  shapes.push(...(mixer.kind === 'attention' ? attentionShapes(mixer, width) : mamba2Shapes(mixer, width)));
  norm('post_attention_norm.weight', normAfter);
  if (feedForward === undefined) return shapes;
  const { hidden, hasBias } = feedForward;
  norm('ffn_norm.weight', normBefore);
  shapes.push(...projection('ffn_gate', hidden, width, hasBias));
  shapes.push(...projection('ffn_up', hidden, width, hasBias));
  shapes.push(...projection('ffn_down', width, hidden, hasBias));
  norm('post_ffw_norm.weight', normAfter);
  return shapes;
}

function attentionShapes(mixer: AttentionDescription, width: number): Shapes {
  const { headDim, queryKeyNorm, hasInputBias, hasOutputBias } = mixer;
  const querySize = mixer.numHeads * headDim;
  const keySize = mixer.numKvHeads * headDim;
  const shapes: Shapes = [
    ...projection('attn_q', querySize, width, hasInputBias),
    ...projection('attn_k', keySize, width, hasInputBias),
    ...projection('attn_v', keySize, width, hasInputBias),
  ];
  if (queryKeyNorm !== 'none') {
    const perHead = queryKeyNorm === 'head';
    shapes.push(['attn_q_norm.weight', [perHead ? headDim : querySize]]);
    shapes.push(['attn_k_norm.weight', [perHead ? headDim : keySize]]);
  }
  return [...shapes, ...projection('attn_output', width, querySize, hasOutputBias)];
}

function mamba2Shapes(mixer: Mamba2Description, width: number): Shapes {
  const { inner, numHeads, numGroups, convWidth } = mixer;
  const channels = convolvedChannels(mixer);
  return [
    ['ssm_in.weight', [projectedSize(mixer), width]],
    ['ssm_conv1d.weight', [channels, convWidth]],
    ['ssm_conv1d.bias', [channels]],
    ['ssm_dt.bias', [numHeads]],
    ['ssm_a', [numHeads, 1]],
    ['ssm_d', [numHeads, 1]],
    ['ssm_norm.weight', [numGroups, inner / numGroups]],
    ['ssm_out.weight', [width, inner]],
  ];
}

function projection(name: string, out: number, size: number, hasBias: boolean): Shapes {
  const weight: [string, number[]] = [`${name}.weight`, [out, size]];
  return hasBias ? [weight, [`${name}.bias`, [out]]] : [weight];
}
