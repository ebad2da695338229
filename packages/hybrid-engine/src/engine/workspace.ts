import type { AttentionDescription } from '../description/attention.ts';
import { convolvedChannels, type Mamba2Description, projectedSize } from '../description/mamba2.ts';
import type { ModelDescription } from '../description/model-description.ts';

/** STORAGE, COPY_SRC and COPY_DST of `GPUBufferUsage`; the globals that carry the flags are missing in Node. */
const STORAGE_COPY = 0x80 | 0x04 | 0x08;

/**
 * Activations of one step, `[maxTokens, …] f32` each, with room for the widest layer. Written and read inside a step only: nothing
 * in them outlives it.
 */
export interface Workspace {
  /** Residual stream `[maxTokens, width]`. */
  hidden: GPUBuffer;
  /** `[maxTokens, width]`: what a branch gives, before the norm behind it. */
  branch: GPUBuffer;
  /** `[maxTokens, qkvSize]`: queries, keys and values side by side. */
  qkv: GPUBuffer;
  /** `[maxTokens, numHeads × headDim]`. */
  attended: GPUBuffer;
  /** `[maxTokens, projectedStride]`: z, x, B, C and dt side by side. */
  projection: GPUBuffer;
  /** `[maxTokens, convolvedChannels]`. */
  convolved: GPUBuffer;
  /** `[maxTokens, inner]`. */
  mixed: GPUBuffer;
  /** `[maxTokens, hidden of the feed-forward network]`. */
  expanded: GPUBuffer;
  /** `[maxTokens, width]`: the tokens whose logits are asked for. */
  lastHidden: GPUBuffer;
  /** `[maxTokens, vocabSize]`: a row for each of them. */
  logits: GPUBuffer;
}

/** Values of queries, keys and values of one token. */
export function qkvSize({ numHeads, numKvHeads, headDim }: AttentionDescription): number {
  return (numHeads + 2 * numKvHeads) * headDim;
}

/** Words from one row of a Mamba-2 projection to the next: kernels read them by four. */
export function projectedStride(mixer: Mamba2Description): number {
  return Math.ceil(projectedSize(mixer) / 4) * 4;
}

/** The most tokens of one step, of all requests together, whose activations a device with these limits can bind. */
export function maxStepTokens(
  model: ModelDescription,
  limits: Pick<GPUSupportedLimits, 'maxBufferSize' | 'maxStorageBufferBindingSize'>,
): number {
  const longestRow = Math.max(...Object.values(rowSizes(model)));
  return Math.floor(Math.min(limits.maxBufferSize, limits.maxStorageBufferBindingSize) / (4 * longestRow));
}

/** Allocates the activations of steps of up to `maxTokens` tokens, of all requests together. The caller destroys them. */
export function createWorkspace(device: GPUDevice, model: ModelDescription, maxTokens: number): Workspace {
  const buffers = Object.entries(rowSizes(model)).map(([name, size]) => {
    const label = `bufferwise ${name} [${maxTokens}, ${size}] f32`;
    return [name, device.createBuffer({ label, size: maxTokens * size * 4, usage: STORAGE_COPY })];
  });
  return Object.fromEntries(buffers);
}

export function destroyWorkspace(workspace: Workspace): void {
  for (const buffer of Object.values(workspace) as GPUBuffer[]) buffer.destroy();
}

/** What a buffer has at least: those that no layer needs are there as well, as small as can be. */
const LEAST_ROW = 4;

/** Values of one row of each activation. */
function rowSizes({ width, vocabSize, layers }: ModelDescription): Record<keyof Workspace, number> {
  const most = (sizes: readonly number[]) => Math.max(LEAST_ROW, ...sizes);
  const attention = layers.flatMap(({ mixer }) => (mixer.kind === 'attention' ? [mixer] : []));
  const mamba2 = layers.flatMap(({ mixer }) => (mixer.kind === 'mamba2' ? [mixer] : []));
  return {
    hidden: width,
    branch: layers.some(({ normAfter }) => normAfter) ? width : LEAST_ROW,
    qkv: most(attention.map(qkvSize)),
    attended: most(attention.map(({ numHeads, headDim }) => numHeads * headDim)),
    projection: most(mamba2.map(projectedStride)),
    convolved: most(mamba2.map(convolvedChannels)),
    mixed: most(mamba2.map(({ inner }) => inner)),
    expanded: most(layers.map(({ feedForward }) => feedForward?.hidden ?? 0)),
    lastHidden: width,
    logits: vocabSize,
  };
}
