import type { KvCache, KvCacheManager } from '@bufferwise/cache-manager';
import type { BufferId, LayerGroupId } from '@bufferwise/core-policy';
import { ComputeContext, type ComputeStep, Readback, type StepData } from '@bufferwise/gpu-kernels';
import type { PageSource } from '@bufferwise/scratch-allocator';
import { recordEmbed } from '../model/dense/embed.ts';
import { recordGatherRows } from '../model/dense/gather-rows.ts';
import { recordMatmul } from '../model/dense/matmul.ts';
import { GpuWeights } from '../model/gpu-weights.ts';
import type { HybridModel } from '../model/model.ts';
import type { HybridModelConfig } from '../model/model-config.ts';
import { AttentionMixer } from './attention-mixer.ts';
import { MambaMixer } from './mamba-mixer.ts';
import { PagedBuffers } from './paged-buffers.ts';
import { createWorkspace, destroyWorkspace, type Workspace } from './workspace.ts';

/** The tokens of one request, or of a beam of it, in one step. */
export interface SequenceChunk {
  /** Active, with room for the tokens. */
  cache: KvCache;
  /** Which of its beams. Default 0. */
  beam?: number;
  /** Where its pages are, when not all of them are those of `cache`. */
  pages?: PageSource;
  /** Token ids, at least one. */
  tokens: Uint32Array;
  /** Position of the first one in its sequence: the tokens that the request has written before. */
  start: number;
  /** Behind which tokens logits are wanted: a prefill chunk in the middle of a prompt needs none. Default `last`. */
  logits?: 'last' | 'all' | 'none';
  /** Tokens that were matched: those of this chunk before are given again. Default 0. */
  matched?: number;
  /** Groups that hold what was matched. Default none. */
  reusedGroups?: ReadonlySet<LayerGroupId>;
  /** The same object in every step of the sequence. Without it drafts cannot be taken back. */
  sequence?: object;
}

/** Work handed to the device, as counted. */
export interface StepCosts {
  numSteps: number;
  numTokens: number;
  numDispatches: number;
  uploadedBytes: number;
}

/** What the mixers of one step share. */
export interface StepInput {
  step: ComputeStep;
  chunks: readonly SequenceChunk[];
  /** Tokens of all requests together. */
  numTokens: number;
  /** Finds the pages of a buffer. */
  pagesOf: ReturnType<PagedBuffers['bind']>;
}

/**
 * The model on the device: one step runs the tokens of several requests through all layers, reading and writing what they
 * remember in the pages that the manager names. One upload and one submission a step.
 */
export class GpuModel {
  readonly costs: StepCosts = { numSteps: 0, numTokens: 0, numDispatches: 0, uploadedBytes: 0 };
  readonly #config: HybridModelConfig;
  readonly #context: ComputeContext;
  readonly #weights: GpuWeights;
  readonly #workspace: Workspace;
  readonly #readback: Readback;
  readonly #pages: PagedBuffers;
  readonly #maxTokens: number;
  readonly #attention: AttentionMixer;
  readonly #mamba: MambaMixer;

  /** Uploads the weights and allocates the activations of steps of up to `maxTokens` tokens. What throws leaves nothing allocated. */
  static async create(options: {
    model: HybridModel;
    device: GPUDevice;
    manager: KvCacheManager;
    maxTokens: number;
  }): Promise<GpuModel> {
    const weights = await GpuWeights.upload(options.device, options.model);
    const workspace = createWorkspace(options.device, options.model.config, options.maxTokens);
    try {
      const gpuModel = new GpuModel(options, weights, workspace);
      await Promise.all([gpuModel.#attention.warmUp(), gpuModel.#mamba.warmUp(gpuModel.#context)]);
      return gpuModel;
    } catch (error) {
      weights.destroy();
      destroyWorkspace(workspace);
      throw error;
    }
  }

  private constructor(
    { model, device, manager, maxTokens }: { model: HybridModel; device: GPUDevice; manager: KvCacheManager; maxTokens: number },
    weights: GpuWeights,
    workspace: Workspace,
  ) {
    this.#config = model.config;
    this.#context = ComputeContext.of(device);
    this.#weights = weights;
    this.#workspace = workspace;
    this.#readback = new Readback(device, 4 * model.config.vocabSize * maxTokens);
    this.#pages = new PagedBuffers(manager, manager.bufferGrouping.flat() as BufferId[]);
    this.#maxTokens = maxTokens;
    this.#attention = new AttentionMixer(this.#context, model.config, this.#workspace, manager.layout.tokensPerBlock);
    this.#mamba = new MambaMixer(model.config, this.#workspace);
  }

  /**
   * Runs the tokens of a step. Everything is submitted before the call returns: the manager may move on at once.
   *
   * @param chunks at most `maxTokens` tokens together, each request once
   * @returns for each chunk the logits `[vocabSize] f32` that it asked for, in the order of its tokens
   */
  async step(chunks: readonly SequenceChunk[]): Promise<Float32Array<ArrayBuffer>[][]> {
    const numTokens = chunks.reduce((sum, { tokens }) => sum + tokens.length, 0);
    if (numTokens > this.#maxTokens) throw new RangeError(`a step has ${numTokens} tokens, there is room for ${this.#maxTokens}`);
    const step = this.#context.step('bufferwise model');
    this.#record(step, chunks, numTokens);
    const { numDispatches, uploadedBytes } = step.submit();
    this.costs.numSteps++;
    this.costs.numTokens += numTokens;
    this.costs.numDispatches += numDispatches;
    this.costs.uploadedBytes += uploadedBytes;
    const rows = await this.#readLogits(chunks.reduce((sum, chunk) => sum + numLogits(chunk), 0));
    return chunks.map((chunk) => rows.splice(0, numLogits(chunk)));
  }

  destroy(): void {
    this.#weights.destroy();
    this.#attention.destroy();
    this.#readback.destroy();
    destroyWorkspace(this.#workspace);
  }

  #record(step: ComputeStep, chunks: readonly SequenceChunk[], numTokens: number): void {
    const { hidden, expanded } = this.#workspace;
    const { normEps: eps } = this.#config;
    const input: StepInput = {
      step,
      chunks,
      numTokens,
      pagesOf: this.#pages.bind(step, chunks),
    };
    const attention = this.#attention.begin(input);
    const mamba = this.#mamba.begin(input);
    recordEmbed(step, {
      numTokens,
      tokens: uploadTokens(step, chunks, numTokens),
      embedding: this.#weights.embedding,
      output: hidden,
    });
    this.#weights.layers.forEach((layer, layerId) => {
      if (layer.kind === 'M') mamba(layer, layerId);
      else attention(layer, layerId);
      const norm = { weight: layer.norm2, eps };
      recordMatmul(step, {
        numTokens,
        input: { buffer: hidden },
        norm,
        weight: layer.gateUp,
        output: { buffer: expanded },
        epilogue: 'swiglu',
      });
      recordMatmul(step, {
        numTokens,
        input: { buffer: expanded },
        weight: layer.down,
        output: { buffer: hidden },
        epilogue: 'add',
      });
    });
    this.#recordLogits(step, chunks);
  }

  /** Only the last token of each request is asked for its logits. */
  #recordLogits(step: ComputeStep, chunks: readonly SequenceChunk[]): void {
    const { hidden, lastHidden, logits } = this.#workspace;
    const { dModel, normEps: eps } = this.#config;
    const rows: number[] = [];
    let end = 0;
    for (const chunk of chunks) {
      end += chunk.tokens.length;
      for (let back = numLogits(chunk); back > 0; back--) rows.push(end - back);
    }
    if (rows.length === 0) return;
    recordGatherRows(step, {
      numRows: rows.length,
      rowSize: dModel,
      rows: step.upload(Uint32Array.from(rows)),
      source: hidden,
      output: lastHidden,
    });
    const { embedding: weight, norm } = this.#weights;
    recordMatmul(step, {
      numTokens: rows.length,
      input: { buffer: lastHidden },
      norm: { weight: norm, eps },
      weight,
      output: { buffer: logits },
    });
  }

  async #readLogits(numRequests: number): Promise<Float32Array<ArrayBuffer>[]> {
    if (numRequests === 0) return [];
    const { vocabSize } = this.#config;
    const bytes = new Uint8Array(numRequests * vocabSize * 4);
    await this.#readback.read('logits', [{ buffer: this.#workspace.logits, offset: 0, size: bytes.length }], bytes);
    return Array.from(
      { length: numRequests },
      (_, request) => new Float32Array(bytes.buffer, request * vocabSize * 4, vocabSize),
    );
  }
}

function numLogits({ logits = 'last', tokens }: SequenceChunk): number {
  return logits === 'all' ? tokens.length : logits === 'last' ? 1 : 0;
}

function uploadTokens(step: ComputeStep, chunks: readonly SequenceChunk[], numTokens: number): StepData {
  const ids = new Uint32Array(numTokens);
  let at = 0;
  for (const { tokens } of chunks) {
    ids.set(tokens, at);
    at += tokens.length;
  }
  return step.upload(ids);
}
