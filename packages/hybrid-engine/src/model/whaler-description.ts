import type { AttentionDescription } from '../description/attention.ts';
import type { Mamba2Description } from '../description/mamba2.ts';
import type { LayerDescription, ModelDescription } from '../description/model-description.ts';
import type { HybridModelConfig, LayerKind } from './model-config.ts';

/** The description of a model built like the demo model: one of the many that the engine runs. */
export function describeWhaler(config: HybridModelConfig): ModelDescription {
  const mixers: Record<LayerKind, LayerDescription['mixer']> = {
    M: mamba2(config),
    F: attention(config),
    S: { ...attention(config), windowSize: config.slidingWindow, numSinkTokens: config.numSinkTokens },
  };
  return {
    architecture: 'whaler',
    vocabSize: config.vocabSize,
    width: config.dModel,
    normEps: config.normEps,
    embeddingScale: 1,
    residualScale: 1,
    logitScale: 1,
    tiedOutput: true,
    layers: Array.from(config.layerPattern, (letter) => ({
      mixer: mixers[letter as LayerKind],
      feedForward: { hidden: config.mlpHidden, activation: 'silu', hasBias: false },
      normBefore: true,
      normAfter: false,
    })),
  };
}

function attention({ numHeads, numKvHeads, headDim, ropeTheta }: HybridModelConfig): AttentionDescription {
  return {
    kind: 'attention',
    numHeads,
    numKvHeads,
    headDim,
    scale: 1 / Math.sqrt(headDim),
    rotary: { pairs: 'halves', base: ropeTheta, dimensions: headDim, positionScale: 1, hasFactors: false },
    queryKeyNorm: 'none',
    hasInputBias: false,
    hasOutputBias: false,
  };
}

function mamba2(config: HybridModelConfig): Mamba2Description {
  return {
    kind: 'mamba2',
    inner: config.ssmInner,
    numHeads: config.ssmNumHeads,
    headDim: config.ssmHeadDim,
    numGroups: 1,
    stateSize: config.ssmState,
    convWidth: config.ssmConvWidth,
  };
}
