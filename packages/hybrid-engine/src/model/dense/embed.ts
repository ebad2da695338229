import { type Binding, type ComputeStep, defineKernel, packParams, requireBindingWords } from '@bufferwise/gpu-kernels';
import code from './embed.wgsl';
import { columnQuads, type GpuMatrix, requireMatrix } from './matrix.ts';
import { refusal, requireCount } from './operands.ts';

export interface EmbedOperands {
  /** >= 0. */
  numTokens: number;
  /** `[numTokens] u32`: token ids, each below the embedding's `numColumns`; the caller makes sure. */
  tokens: Binding;
  /** The embedding as the matrix that logits are made with: a column for each token of the vocabulary. */
  embedding: GpuMatrix;
  /** What an embedding is multiplied by. Default 1. */
  scale?: number;
  /** `[numTokens, inSize] f32`, written. */
  output: Binding;
}

/**
 * Embeddings of tokens; see `recordEmbed` for the operands.
 *
 * Workgroup: 64 invocations, four values each. Dispatch: `ceil(numTokens * inSize / 256)`, folded.
 * Needs 3 storage buffers, no workgroup memory; default limits. Its reference is one line of the test.
 */
export const embedKernel = defineKernel({
  label: 'embed',
  code,
  bindings: { params: 'uniform', tokens: 'read-only-storage', embedding: 'read-only-storage', output: 'storage' },
  constants: { EMBEDDING_IS_F16: 0 },
  workgroupSize: () => [64, 1, 1],
  workgroups: ({ numValues }: { numValues: number }) => Math.ceil(numValues / 256),
});

/**
 * Adds one dispatch: `output[t] = scale * embedding of tokens[t]`.
 *
 * @throws {KernelError} `kernel-dispatch` when an operand does not fit the shape; nothing was added then
 */
export function recordEmbed(step: ComputeStep, operands: EmbedOperands): void {
  const { numTokens, tokens, embedding, scale = 1, output } = operands;
  const { label } = embedKernel;
  const { inSize: width, numColumns, format, order } = embedding;
  requireCount(label, 'numTokens', numTokens);
  requireMatrix(label, 'embedding', embedding);
  if (order !== 'plain') throw refusal(label, `embedding has its columns in the order ${order}. Pack it anew.`);
  requireBindingWords(label, 'tokens', tokens, numTokens);
  requireBindingWords(label, 'output', output, numTokens * width);
  const params = packParams(
    { numTokens: 'u32', width: 'u32', columnQuads: 'u32', scale: 'f32' },
    { numTokens, width, columnQuads: columnQuads(numColumns), scale },
  );
  step.dispatch(embedKernel, {
    shape: { numValues: numTokens * width },
    constants: { EMBEDDING_IS_F16: format === 'f16' ? 1 : 0 },
    bindings: { params: step.upload(params), tokens, embedding: embedding.buffer, output },
  });
}
