import {
  type ComputeContext,
  type ComputeStep,
  type KvPages,
  PagedAttention,
  recordPageWrite,
  type StepData,
} from '@bufferwise/gpu-kernels';
import type { AttentionDescription } from '../description/attention.ts';
import type { ModelDescription } from '../description/model-description.ts';
import type { RotaryDescription } from '../description/rotary.ts';
import { recordRope, uploadRotations } from '../model/dense/rope.ts';
import { recordRowNorm } from '../model/dense/row-norm.ts';
import type { GpuAttentionWeights } from '../model/gpu-weights.ts';
import type { StepInput } from './gpu-model.ts';
import type { BoundPages } from './paged-buffers.ts';
import { qkvSize, type Workspace } from './workspace.ts';

/** Attention layers: new keys and values go to their pages, then every query reads through the page tables. */
export class AttentionMixer {
  readonly #model: ModelDescription;
  readonly #ropeFactors: Float32Array | undefined;
  readonly #workspace: Workspace;
  readonly #tokensPerBlock: number;
  readonly #attention = new Map<string, PagedAttention>();

  /** @param ropeFactors of the tensor `rope_freqs.weight`, where the model has it */
  constructor(
    context: ComputeContext,
    model: ModelDescription,
    ropeFactors: Float32Array | undefined,
    workspace: Workspace,
    tokensPerBlock: number,
  ) {
    this.#model = model;
    this.#ropeFactors = ropeFactors;
    this.#workspace = workspace;
    this.#tokensPerBlock = tokensPerBlock;
    for (const { mixer } of model.layers) {
      if (mixer.kind !== 'attention' || this.#attention.has(shapeKey(mixer))) continue;
      const { numHeads: numQueryHeads, numKvHeads, headDim, scale } = mixer;
      this.#attention.set(shapeKey(mixer), new PagedAttention(context, { numQueryHeads, numKvHeads, headDim, scale }));
    }
  }

  async warmUp(): Promise<void> {
    await Promise.all(Array.from(this.#attention.values(), (attention) => attention.warmUp()));
  }

  destroy(): void {
    for (const attention of this.#attention.values()) attention.destroy();
  }

  /** Uploads what all attention layers of a step share, and returns what records one of them. */
  begin(input: StepInput): (mixer: AttentionDescription, weights: GpuAttentionWeights, layerId: number) => void {
    const { step, chunks, numTokens, branches, pagesOf } = input;
    const numRequests = chunks.length;
    const places = new Int32Array(numTokens * 2);
    const positions = new Uint32Array(numTokens);
    const queryStart = new Uint32Array(numRequests + 1);
    const contextLength = new Uint32Array(numRequests);
    let row = 0;
    chunks.forEach(({ tokens, start }, request) => {
      for (let i = 0; i < tokens.length; i++, row++) {
        places[row * 2] = request;
        places[row * 2 + 1] = start + i;
        positions[row] = start + i;
      }
      queryStart[request + 1] = row;
      contextLength[request] = start + tokens.length;
    });
    const shared = {
      places: step.upload(places),
      queryStart: step.upload(queryStart),
      contextLength: step.upload(contextLength),
    };
    const turn = this.#rotations(step, positions);
    const oneTokenEach = numTokens === numRequests;
    const maxContextLength = Math.max(...contextLength);

    const { qkv, attended } = this.#workspace;
    return (mixer, weights, layerId) => {
      const { numHeads, numKvHeads, headDim, windowSize, numSinkTokens } = mixer;
      const rowWords = numKvHeads * headDim;
      const rowStrideWords = qkvSize(mixer);
      const rows = { buffer: qkv, strideWords: rowStrideWords };
      branches.enter(weights, weights.qkv, rows);
      this.#normHeads(input, mixer, weights);
      if (mixer.rotary) {
        const heads = { numTokens, numHeads: numHeads + numKvHeads, headDim, heads: rows };
        recordRope(step, { ...heads, rotary: mixer.rotary, rotations: turn(mixer.rotary) });
      }
      const keys = this.#kvPages(pagesOf({ layerId, role: 'key' }));
      const values = this.#kvPages(pagesOf({ layerId, role: 'value' }));
      [keys, values].forEach((pages, i) => {
        const { pool, table, tableStride, tokensPerPage, pageStrideWords } = pages;
        const rowsBaseWords = (numHeads + i * numKvHeads) * headDim;
        const shape = { numTokens, tokensPerPage, tableStride, rowWords, rowStrideWords, rowsBaseWords, pageStrideWords };
        recordPageWrite(step, { shape, rows: qkv, tokens: shared.places, pageTable: table, pages: pool });
      });
      const operands = {
        keys,
        values,
        queries: qkv,
        queriesStrideWords: rowStrideWords,
        contextLength: shared.contextLength,
        output: attended,
        numRequests,
        ...(windowSize === undefined ? {} : { slidingWindowSize: windowSize, numSinkTokens }),
      };
      const attention = this.#attention.get(shapeKey(mixer)) as PagedAttention;
      if (oneTokenEach) attention.decode(step, { ...operands, maxContextLength });
      else attention.prefill(step, { ...operands, numTokens, queryStart: shared.queryStart });
      branches.leave(weights, weights.out, { buffer: attended });
    };
  }

  /** Norms of queries and keys, where the layer has them. */
  #normHeads({ step, numTokens }: StepInput, mixer: AttentionDescription, { queryNorm, keyNorm }: GpuAttentionWeights): void {
    const { numHeads, numKvHeads, headDim, queryKeyNorm } = mixer;
    const perHead = queryKeyNorm === 'head';
    [
      { weight: queryNorm, firstHead: 0, count: numHeads },
      { weight: keyNorm, firstHead: numHeads, count: numKvHeads },
    ].forEach(({ weight, firstHead, count }) => {
      if (weight === undefined) return;
      recordRowNorm(step, {
        numTokens,
        runSize: perHead ? headDim : count * headDim,
        numRuns: perHead ? count : 1,
        values: { buffer: this.#workspace.qkv, offsetWords: firstHead * headDim, strideWords: qkvSize(mixer) },
        weight,
        sharesWeight: perHead,
        eps: this.#model.normEps,
      });
    });
  }

  /** Uploads the rotations of each kind of layer when the first one asks. */
  #rotations(step: ComputeStep, positions: Uint32Array): (rotary: RotaryDescription) => StepData {
    const uploaded = new Map<string, StepData>();
    return (rotary) => {
      const key = JSON.stringify(rotary);
      const rotations =
        uploaded.get(key) ?? uploadRotations(step, positions, rotary, rotary.hasFactors ? this.#ropeFactors : undefined);
      uploaded.set(key, rotations);
      return rotations;
    };
  }

  #kvPages({ pool, table, tableStride, pageStrideWords }: BoundPages): KvPages {
    return { pool, table, tableStride, pageStrideWords, tokensPerPage: this.#tokensPerBlock };
  }
}

function shapeKey({ numHeads, numKvHeads, headDim, scale }: AttentionDescription): string {
  return `${numHeads} ${numKvHeads} ${headDim} ${scale}`;
}
