import type { HybridModelConfig } from '../model/model-config.ts';
import { qkvSize, ssmConvChannels, ssmProjectionSize } from '../model/model-config.ts';

/** STORAGE, COPY_SRC and COPY_DST of `GPUBufferUsage`; the globals that carry the flags are missing in Node. */
const STORAGE_COPY = 0x80 | 0x04 | 0x08;

/** Activations of one step, `[maxTokens, …] f32` each. Written and read inside a step only: nothing in them outlives it. */
export interface Workspace {
  /** Residual stream `[maxTokens, dModel]`. */
  hidden: GPUBuffer;
  /** `[maxTokens, qkvSize]`: queries, keys and values side by side. */
  qkv: GPUBuffer;
  /** `[maxTokens, numHeads * headDim]`. */
  attended: GPUBuffer;
  /** `[maxTokens, ssmProjectionSize]`. */
  projection: GPUBuffer;
  /** `[maxTokens, ssmConvChannels]`. */
  convolved: GPUBuffer;
  /** `[maxTokens, ssmInner]`. */
  mixed: GPUBuffer;
  /** `[maxTokens, mlpHidden]`. */
  expanded: GPUBuffer;
  /** `[maxTokens, dModel]`: the last token of every request. */
  lastHidden: GPUBuffer;
  /** `[maxTokens, vocabSize]`: a row for every request. */
  logits: GPUBuffer;
}

/** Allocates the activations of steps of up to `maxTokens` tokens, of all requests together. The caller destroys them. */
export function createWorkspace(device: GPUDevice, config: HybridModelConfig, maxTokens: number): Workspace {
  const rows = (name: string, rowValues: number): GPUBuffer =>
    device.createBuffer({
      label: `bufferwise ${name} [${maxTokens}, ${rowValues}] f32`,
      size: maxTokens * rowValues * 4,
      usage: STORAGE_COPY,
    });
  return {
    hidden: rows('hidden', config.dModel),
    qkv: rows('qkv', qkvSize(config)),
    attended: rows('attended', config.numHeads * config.headDim),
    projection: rows('projection', ssmProjectionSize(config)),
    convolved: rows('convolved', ssmConvChannels(config)),
    mixed: rows('mixed', config.ssmInner),
    expanded: rows('expanded', config.mlpHidden),
    lastHidden: rows('last hidden', config.dModel),
    logits: rows('logits', config.vocabSize),
  };
}

export function destroyWorkspace(workspace: Workspace): void {
  for (const buffer of Object.values(workspace) as GPUBuffer[]) buffer.destroy();
}
