import { type ConsumerAdapter, type ConsumerStep, type ReplayPlan, StepPages, type StepRequest } from '@bufferwise/adapter-kit';
import type { GroupReuseStatus, KvCache, KvCacheManager } from '@bufferwise/cache-manager';
import type { BufferId, LayerGroupId } from '@bufferwise/core-policy';
import { ComputeContext, type ComputeStep, Readback, type StepData } from '@bufferwise/gpu-kernels';
import type { PageSource } from '@bufferwise/scratch-allocator';
import type { MemoryOptions } from '../description/cache-layers.ts';
import type { LayerDescription, ModelDescription } from '../description/model-description.ts';
import { dequantise } from '../gguf/dequantise.ts';
import { recordEmbed } from '../model/dense/embed.ts';
import { recordGatherRows } from '../model/dense/gather-rows.ts';
import { recordMatmul } from '../model/dense/matmul.ts';
import type { EngineModel } from '../model/engine-model.ts';
import { type GpuLayerWeights, GpuWeights } from '../model/gpu-weights.ts';
import { AttentionMixer } from './attention-mixer.ts';
import { Branches } from './branch.ts';
import { requireKernels } from './gpu-requirements.ts';
import { MambaMixer } from './mamba-mixer.ts';
import { createWorkspace, destroyWorkspace, type Workspace } from './workspace.ts';

/** The tokens of one request in one step. */
export interface SequenceChunk {
  /** Active, with room for the tokens. */
  cache: KvCache;
  /** Token ids, at least one. */
  tokens: Uint32Array;
  /** Position of the first one in its sequence: the tokens that the request has written before, less those that it gives again. */
  start: number;
  /** Behind which tokens logits are wanted: a prefill chunk in the middle of a prompt needs none. Default `last`. */
  logits?: 'last' | 'all' | 'none';
  /** The beam whose pages are written and read. Default 0. */
  beam?: number;
  /** Where its pages are, when not all of them are those of `cache`. */
  pages?: PageSource;
  /** Tokens of the request's match. Those of the chunk before it are given again, for groups that were not reused. Default 0. */
  matched?: number;
  /** Groups whose pages hold the match: tokens before it are not written there. Default: all. */
  reusedGroups?: ReadonlySet<LayerGroupId>;
  /** `false`: no commit takes a snapshot behind the step. */
  snapshot?: boolean;
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
  compute: ComputeStep;
  /** The requests, and where their pages are. */
  consumerStep: ConsumerStep;
  /** Tokens of all requests together. */
  numTokens: number;
  branches: Branches;
}

interface GpuModelOptions {
  model: EngineModel;
  device: GPUDevice;
  manager: KvCacheManager;
  /** Tokens of a step at most, of all requests together. */
  maxTokens: number;
  /** As `cacheLayers` was given it for the manager's config. */
  memory?: MemoryOptions;
}

/**
 * A described model on the device: one step runs the tokens of several requests through all layers, reading and writing what they
 * remember in the pages that the manager names. One upload and one submission a step.
 */
export class GpuModel {
  readonly costs: StepCosts = { numSteps: 0, numTokens: 0, numDispatches: 0, uploadedBytes: 0 };
  readonly #model: ModelDescription;
  readonly #context: ComputeContext;
  readonly #weights: GpuWeights;
  readonly #workspace: Workspace;
  readonly #readback: Readback;
  readonly #manager: KvCacheManager;
  readonly #pages: StepPages;
  readonly #allGroups: ReadonlySet<LayerGroupId>;
  readonly #maxTokens: number;
  readonly #keepsRings: boolean;
  readonly #attention: AttentionMixer;
  readonly #mamba: MambaMixer;

  /**
   * Uploads the weights and allocates the activations of steps of up to `maxTokens` tokens. What throws leaves nothing allocated.
   *
   * @throws {ModelError} `model-config` for a model that there are no kernels for, `model-weights`, `model-memory`
   */
  static async create(options: GpuModelOptions): Promise<GpuModel> {
    const { device, model, maxTokens } = options;
    requireKernels(model.description);
    const weights = await GpuWeights.upload(device, model);
    const workspace = createWorkspace(device, model.description, maxTokens);
    try {
      const gpuModel = new GpuModel(options, weights, workspace);
      await Promise.all([gpuModel.#attention.consumer.warmUp(), gpuModel.#mamba.consumer.warmUp()]);
      return gpuModel;
    } catch (error) {
      weights.destroy();
      destroyWorkspace(workspace);
      throw error;
    }
  }

  private constructor(options: GpuModelOptions, weights: GpuWeights, workspace: Workspace) {
    const { model, device, manager, maxTokens, memory = {} } = options;
    const { description, tensors } = model;
    const { layout, bufferGrouping } = manager;
    this.#model = description;
    this.#context = ComputeContext.of(device);
    this.#weights = weights;
    this.#workspace = workspace;
    this.#readback = new Readback(device, 4 * description.vocabSize * maxTokens);
    this.#manager = manager;
    this.#pages = new StepPages(layout, bufferGrouping.flat() as BufferId[]);
    this.#allGroups = new Set(bufferGrouping.map((_, groupId) => groupId as LayerGroupId));
    this.#maxTokens = maxTokens;
    this.#keepsRings = memory.replay !== undefined;
    const factors = tensors.get('rope_freqs.weight');
    const shared = { model: description, layout, memory, workspace };
    this.#attention = new AttentionMixer(this.#context, { ...shared, ropeFactors: factors && dequantise(factors) });
    this.#mamba = new MambaMixer(this.#context, shared);
  }

  /**
   * How a request begins whose groups can supply so much: for its first `resume`, and for `start` of its first chunk. With Mamba-2
   * layers whatever is computed again is so from token 0 on, as a state that was reused says nothing about tokens before the match.
   */
  planReplay(reuseStatus: readonly GroupReuseStatus[], matched: number): ReplayPlan {
    const consumers: ConsumerAdapter<never>[] = [this.#attention.consumer, this.#mamba.consumer];
    const plans = consumers.map((consumer) => consumer.planReplay(reuseStatus, matched));
    const from = Math.min(...plans.map((plan) => plan.from));
    const isRecurrent = this.#model.layers.some(({ mixer }) => mixer.kind === 'mamba2');
    return {
      optionalReuseGroups: plans.flatMap(({ optionalReuseGroups }) => optionalReuseGroups),
      rebuiltGroups: plans.flatMap(({ rebuiltGroups }) => rebuiltGroups),
      from: isRecurrent && from < matched ? 0 : from,
    };
  }

  /**
   * Runs the tokens of a step. Everything is submitted before the call returns: the manager may move on at once.
   *
   * @param chunks at most `maxTokens` tokens together, each request once
   * @returns for each request the logits `[vocabSize] f32` behind the tokens that it asked for: of the last, of all in order, or none
   */
  step(chunks: readonly SequenceChunk[]): Promise<Float32Array<ArrayBuffer>[][]> {
    const numTokens = chunks.reduce((sum, { tokens }) => sum + tokens.length, 0);
    if (numTokens > this.#maxTokens) throw new RangeError(`a step has ${numTokens} tokens, there is room for ${this.#maxTokens}`);
    const step = this.#context.step('bufferwise model');
    this.#record(step, chunks, numTokens);
    const { numDispatches, uploadedBytes } = step.submit();
    this.costs.numSteps++;
    this.costs.numTokens += numTokens;
    this.costs.numDispatches += numDispatches;
    this.costs.uploadedBytes += uploadedBytes;
    return this.#readLogits(chunks);
  }

  /**
   * Brings the recurrent state of a request up to its history, where it is kept as tokens to be replayed. Before the manager copies it:
   * before a fork, and before the request is closed or stops committing.
   */
  settle(cache: KvCache): void {
    if (!this.#keepsRings) return;
    const compute = this.#context.step('bufferwise settle');
    this.#mamba.consumer.settle(this.#consumerStep([{ cache, tokens: NO_TOKENS, start: cache.historyLength }]), compute);
    compute.submit();
  }

  destroy(): void {
    this.#weights.destroy();
    this.#attention.consumer.close();
    this.#mamba.consumer.close();
    this.#readback.destroy();
    destroyWorkspace(this.#workspace);
  }

  #record(step: ComputeStep, chunks: readonly SequenceChunk[], numTokens: number): void {
    const branches = new Branches(step, this.#model, this.#workspace, numTokens);
    const input: StepInput = { compute: step, consumerStep: this.#consumerStep(chunks), numTokens, branches };
    const attention = this.#attention.begin(input);
    const mamba = this.#mamba.begin(input);
    recordEmbed(step, {
      numTokens,
      tokens: uploadTokens(step, chunks, numTokens),
      embedding: this.#weights.embedding,
      scale: this.#model.embeddingScale,
      output: this.#workspace.hidden,
    });
    this.#model.layers.forEach(({ mixer, feedForward }, layerId) => {
      const weights = this.#weights.layers[layerId];
      if (mixer.kind === 'attention' && weights.mixer.kind === 'attention') attention(mixer, weights.mixer, layerId);
      if (mixer.kind === 'mamba2' && weights.mixer.kind === 'mamba2') mamba(mixer, weights.mixer, layerId);
      this.#recordFeedForward(branches, feedForward, weights);
    });
    this.#recordLogits(step, chunks);
  }

  /** Reads where the requests' pages are now. */
  #consumerStep(chunks: readonly SequenceChunk[]): ConsumerStep {
    const { tokensPerBlock } = this.#manager.layout;
    const maxBlocks = Math.max(...chunks.map(({ cache }) => Math.ceil(cache.capacity / tokensPerBlock)));
    this.#pages.fill(
      chunks.map(({ cache, beam, pages }) => pages ?? (beam === undefined ? cache : cache.beam(beam))),
      maxBlocks,
    );
    const requests = chunks.map((chunk): StepRequest => {
      const { cache: sequence, tokens, start, matched = 0, reusedGroups = this.#allGroups, snapshot } = chunk;
      return { start, numTokens: tokens.length, matched, reusedGroups, sequence, snapshot };
    });
    return { requests, pages: this.#pages, poolMemory: (layerId, role) => this.#manager.poolMemory(layerId, role) };
  }

  #recordFeedForward(
    branches: Branches,
    feedForward: LayerDescription['feedForward'],
    { feedForward: weights }: GpuLayerWeights,
  ): void {
    if (feedForward === undefined || weights === undefined) return;
    const expanded = { buffer: this.#workspace.expanded };
    branches.enter(weights, weights.gateUp, expanded, feedForward.activation === 'gelu' ? 'geglu' : 'swiglu');
    branches.leave(weights, weights.down, expanded);
  }

  /** Only the tokens that are asked for get logits. */
  #recordLogits(step: ComputeStep, chunks: readonly SequenceChunk[]): void {
    const { hidden, lastHidden, logits } = this.#workspace;
    const { width, normEps: eps, logitScale: scale } = this.#model;
    const rows: number[] = [];
    let end = 0;
    for (const chunk of chunks) {
      end += chunk.tokens.length;
      for (let row = end - numLogitRows(chunk); row < end; row++) rows.push(row);
    }
    if (rows.length === 0) return;
    recordGatherRows(step, {
      numRows: rows.length,
      rowSize: width,
      rows: step.upload(Uint32Array.from(rows)),
      source: hidden,
      output: lastHidden,
    });
    const { output: weight, norm } = this.#weights;
    recordMatmul(step, {
      numTokens: rows.length,
      input: { buffer: lastHidden },
      norm: { weight: norm, eps },
      weight,
      output: { buffer: logits },
      scale,
    });
  }

  async #readLogits(chunks: readonly SequenceChunk[]): Promise<Float32Array<ArrayBuffer>[][]> {
    const { vocabSize } = this.#model;
    const counts = chunks.map(numLogitRows);
    const bytes = new Uint8Array(counts.reduce((sum, count) => sum + count, 0) * vocabSize * 4);
    await this.#readback.read('logits', [{ buffer: this.#workspace.logits, offset: 0, size: bytes.length }], bytes);
    let row = 0;
    return counts.map((count) =>
      Array.from({ length: count }, () => new Float32Array(bytes.buffer, row++ * vocabSize * 4, vocabSize)),
    );
  }
}

const NO_TOKENS = new Uint32Array(0);

function numLogitRows({ tokens, logits = 'last' }: SequenceChunk): number {
  return { last: 1, all: tokens.length, none: 0 }[logits];
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
