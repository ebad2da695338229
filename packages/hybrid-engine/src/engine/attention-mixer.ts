import { type ComputeContext, type KvPages, PagedAttention, recordPageWrite } from '@bufferwise/gpu-kernels';
import { recordMatmul } from '../model/dense/matmul.ts';
import { recordRope, uploadRotations } from '../model/dense/rope.ts';
import type { GpuAttentionWeights } from '../model/gpu-weights.ts';
import { type HybridModelConfig, qkvSize } from '../model/model-config.ts';
import type { StepInput } from './gpu-model.ts';
import type { BoundPages } from './paged-buffers.ts';
import type { Workspace } from './workspace.ts';

/** Attention layers: new keys and values go to their pages, then every query reads through the page tables. */
export class AttentionMixer {
  readonly #config: HybridModelConfig;
  readonly #workspace: Workspace;
  readonly #tokensPerBlock: number;
  readonly #attention: PagedAttention;

  constructor(context: ComputeContext, config: HybridModelConfig, workspace: Workspace, tokensPerBlock: number) {
    this.#config = config;
    this.#workspace = workspace;
    this.#tokensPerBlock = tokensPerBlock;
    const { numHeads: numQueryHeads, numKvHeads, headDim } = config;
    this.#attention = new PagedAttention(context, { numQueryHeads, numKvHeads, headDim });
  }

  warmUp(): Promise<void> {
    return this.#attention.warmUp();
  }

  destroy(): void {
    this.#attention.destroy();
  }

  /** Uploads what all attention layers of a step share, and returns what records one of them. */
  begin({ step, chunks, numTokens, pagesOf }: StepInput): (weights: GpuAttentionWeights, layerId: number) => void {
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
      rotations: uploadRotations(step, positions, this.#config),
      places: step.upload(places),
      queryStart: step.upload(queryStart),
      contextLength: step.upload(contextLength),
    };
    const oneTokenEach = numTokens === numRequests;
    const maxContextLength = Math.max(...contextLength);

    const { hidden, qkv, attended } = this.#workspace;
    const { numHeads, numKvHeads, headDim, normEps: eps, slidingWindow, numSinkTokens } = this.#config;
    const rowWords = numKvHeads * headDim;
    const rowStrideWords = qkvSize(this.#config);
    return (weights, layerId) => {
      const norm = { weight: weights.norm1, eps };
      recordMatmul(step, { numTokens, input: { buffer: hidden }, norm, weight: weights.qkv, output: { buffer: qkv } });
      const heads = { buffer: qkv, strideWords: rowStrideWords };
      recordRope(step, { numTokens, numHeads: numHeads + numKvHeads, headDim, rotations: shared.rotations, heads });
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
        ...(weights.kind === 'S' ? { slidingWindowSize: slidingWindow, numSinkTokens } : {}),
      };
      if (oneTokenEach) this.#attention.decode(step, { ...operands, maxContextLength });
      else this.#attention.prefill(step, { ...operands, numTokens, queryStart: shared.queryStart });
      recordMatmul(step, {
        numTokens,
        input: { buffer: attended },
        weight: weights.out,
        output: { buffer: hidden },
        epilogue: 'add',
      });
    };
  }

  #kvPages({ pool, table, tableStride, pageStrideWords }: BoundPages): KvPages {
    return { pool, table, tableStride, pageStrideWords, tokensPerPage: this.#tokensPerBlock };
  }
}
