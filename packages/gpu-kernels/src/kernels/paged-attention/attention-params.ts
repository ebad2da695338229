import { packParams } from '../../kernel/params.ts';
import type { AttentionShape } from './attention-shape.ts';
import type { KvPages } from './kv-pages.ts';

/** `Params` of attention-common.wgsl. */
const layout = {
  numRequests: 'u32',
  numQueryHeads: 'u32',
  queriesBase: 'u32',
  queriesStride: 'u32',
  keyTokensPerPage: 'u32',
  keyTableStride: 'u32',
  keyBase: 'u32',
  keyPageStride: 'u32',
  valueTokensPerPage: 'u32',
  valueTableStride: 'u32',
  valueBase: 'u32',
  valuePageStride: 'u32',
  rowWords: 'u32',
  slidingWindow: 'i32',
  numSinkTokens: 'i32',
  queryScale: 'f32',
  capScale: 'f32',
  numPartitions: 'u32',
} as const;

export interface AttentionParams {
  numRequests: number;
  queriesBaseWords: number;
  queriesStrideWords: number;
  keys: KvPages;
  values: KvPages;
  /** `NO_WINDOW` = none. */
  slidingWindowSize: number;
  numSinkTokens: number;
  numPartitions: number;
}

/** A window that no position reaches the end of. */
export const NO_WINDOW = 2 ** 31 - 1;

export function attentionParams(shape: AttentionShape, call: AttentionParams): Uint8Array {
  const { numQueryHeads, numKvHeads, headDim, scale = 1 / Math.sqrt(headDim), softCap } = shape;
  const { numRequests, keys, values, numPartitions } = call;
  return packParams(layout, {
    numRequests,
    numQueryHeads,
    queriesBase: call.queriesBaseWords,
    queriesStride: call.queriesStrideWords,
    keyTokensPerPage: keys.tokensPerPage,
    keyTableStride: keys.tableStride,
    keyBase: keys.baseWords ?? 0,
    keyPageStride: keys.pageStrideWords,
    valueTokensPerPage: values.tokensPerPage,
    valueTableStride: values.tableStride,
    valueBase: values.baseWords ?? 0,
    valuePageStride: values.pageStrideWords,
    rowWords: numKvHeads * headDim,
    slidingWindow: Math.min(call.slidingWindowSize, NO_WINDOW),
    numSinkTokens: call.numSinkTokens,
    queryScale: softCap === undefined ? scale * Math.LOG2E : scale / softCap,
    capScale: softCap === undefined ? 0 : softCap * Math.LOG2E,
    numPartitions,
  });
}
