import {
  type ComputeStep,
  ComputeContext as Context,
  type Mamba2ReplayOperands,
  type Mamba2Shape,
  type PageWriteShape,
  type PrefillOperands,
  type ReplayCursor,
} from '@bufferwise/gpu-kernels';
import { openGpu, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';

export {
  afterReplay,
  ComputeContext,
  PagedAttention,
  packReplay,
  recordMamba2Replay,
  recordPageWrite,
  settlesRing,
} from '@bufferwise/gpu-kernels';

export const navigator = { gpu: { requestAdapter: () => openGpu() } };
export const device = await (await openGpu()).requestDevice();
const bufferOf = (words: number) => storageBuffer(device, 4 * words);

/** Four tokens of one request, on one page of 16: keys of 2 heads of 96 numbers in f16, queries of 16. */
export const numTokens = 4;
export const numRequests = 1;
const KEY_WORDS = 2 * 96;
const PAGE_WORDS = (16 * KEY_WORDS) / 2;
export const step: ComputeStep = Context.of(device).step('prefill');
export const pageIndices = Int32Array.of(0);
export const places = Uint32Array.from({ length: 2 * numTokens }, (_, i) => (i % 2 === 0 ? 0 : i / 2));
for (let i = 0; i < numTokens; i++) places.set([0, i], 2 * i);
export const newKeys = { buffer: bufferOf(numTokens * KEY_WORDS) };
const pages = () => ({
  buffer: bufferOf(PAGE_WORDS),
  get pool() {
    return { buffer: this.buffer };
  },
  table: step.upload(pageIndices),
  tableStride: 1,
  tokensPerPage: 16,
  pageStrideWords: PAGE_WORDS,
});
export const keys = pages();
export const values: PrefillOperands['values'] = pages();
export const queries: PrefillOperands['queries'] = { buffer: bufferOf(numTokens * 16 * 96) };
export const queryStart: PrefillOperands['queryStart'] = step.upload(Uint32Array.of(0, numTokens));
export const contextLength: PrefillOperands['contextLength'] = step.upload(Uint32Array.of(numTokens));
export const output: PrefillOperands['output'] = { buffer: bufferOf(numTokens * 16 * 96) };

const write: PageWriteShape = {
  numTokens,
  tokensPerPage: 16,
  tableStride: 1,
  rowWords: KEY_WORDS,
  pageStrideWords: PAGE_WORDS,
  storage: 'f16',
};
export const shape = write as PageWriteShape & Mamba2Shape;

export declare const tokensPerRequest: Uint32Array;
export declare const cursors: ReplayCursor[];
export declare const layer: Mamba2ReplayOperands;
export declare const tail: Mamba2ReplayOperands['tail'];
export declare const state: Mamba2ReplayOperands['state'];
export declare const ringPages: Mamba2ReplayOperands['ring'];
export declare const numAccepted: number[];
