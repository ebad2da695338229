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

/** The most tokens of one step, of all requests together, whose activations a device with these limits can bind. */
export function maxStepTokens(
  config: HybridModelConfig,
  limits: Pick<GPUSupportedLimits, 'maxBufferSize' | 'maxStorageBufferBindingSize'>,
): number {
  const longestRow = Math.max(...Object.values(rowSizes(config)));
  return Math.floor(Math.min(limits.maxBufferSize, limits.maxStorageBufferBindingSize) / (4 * longestRow));
}

/** Allocates the activations of steps of up to `maxTokens` tokens, of all requests together. The caller destroys them. */
export function createWorkspace(device: GPUDevice, config: HybridModelConfig, maxTokens: number): Workspace {
  const buffers = Object.entries(rowSizes(config)).map(([name, size]) => {
    const label = `bufferwise ${name} [${maxTokens}, ${size}] f32`;
    return [name, device.createBuffer({ label, size: maxTokens * size * 4, usage: STORAGE_COPY })];
  });
  return Object.fromEntries(buffers);
}

export function destroyWorkspace(workspace: Workspace): void {
  for (const buffer of Object.values(workspace) as GPUBuffer[]) buffer.destroy();
}

/** Values of one row of each activation. */
function rowSizes(config: HybridModelConfig): Record<keyof Workspace, number> {
  return {
    hidden: config.dModel,
    qkv: qkvSize(config),
    attended: config.numHeads * config.headDim,
    projection: ssmProjectionSize(config),
    convolved: ssmConvChannels(config),
    mixed: config.ssmInner,
    expanded: config.mlpHidden,
    lastHidden: config.dModel,
    logits: config.vocabSize,
  };
}
