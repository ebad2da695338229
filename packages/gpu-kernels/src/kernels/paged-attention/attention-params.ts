import { type ParamLayout, packParams } from '../../kernel/params.ts';
import { type PageGeometry, pageParams } from '../kv-pages/kv-pages.ts';
import type { FullAttentionShape } from './attention-shape.ts';
import type { SelectionGeometry } from './selected-blocks.ts';

/** `Params` of attention-common.wgsl, from `numRequests` on and without its array. */
const scalarLayout = {
  numRequests: 'u32',
  numQueryHeads: 'u32',
  queriesBase: 'u32',
  queriesStride: 'u32',
  contextLengthAt: 'u32',
  queryStartAt: 'u32',
  slidingWindow: 'i32',
  numSinkTokens: 'i32',
  queryScale: 'f32',
  capScale: 'f32',
  numPartitions: 'u32',
  selectionTableAt: 'u32',
  selectionBase: 'u32',
  selectionPageStride: 'u32',
  selectionHeadStride: 'u32',
  maxBlocks: 'u32',
  tokensPerBlock: 'u32',
} as const satisfies ParamLayout;

/** The buffers whose pages a call may read, in the order of `Params`. */
export const PAGED = ['key', 'value', 'keyScale', 'valueScale'] as const;
export type Paged = (typeof PAGED)[number];

/** The arrays of 32-bit integers that a call may read through its one binding of them: entries from its start. */
export type IndexArray = `${Paged}Table` | 'contextLength' | 'queryStart' | 'selectionTable';

export interface AttentionParams {
  numRequests: number;
  queriesBaseWords: number;
  queriesStrideWords: number;
  /** Those that there are. */
  pages: Readonly<Partial<Record<Paged, PageGeometry>>>;
  /** Place of each array that there is. */
  indexPlaces: Readonly<Partial<Record<IndexArray, number>>>;
  /** `NO_WINDOW` = none. */
  slidingWindowSize: number;
  numSinkTokens: number;
  numPartitions: number;
  selection: SelectionGeometry;
  /** One for each query head; empty without learned sinks. */
  sinkScores: ArrayLike<number>;
}

/** A window that no position reaches the end of. */
export const NO_WINDOW = 2 ** 31 - 1;

export function attentionParams(shape: FullAttentionShape, call: AttentionParams): Uint8Array {
  const { numQueryHeads, scale, softCap } = shape;
  const { pages, indexPlaces, selection, sinkScores } = call;
  const packed = PAGED.map((name) => pageParams(pages[name], indexPlaces[`${name}Table`]));
  packed.push(
    packParams(scalarLayout, {
      numRequests: call.numRequests,
      numQueryHeads,
      queriesBase: call.queriesBaseWords,
      queriesStride: call.queriesStrideWords,
      contextLengthAt: indexPlaces.contextLength ?? 0,
      queryStartAt: indexPlaces.queryStart ?? 0,
      slidingWindow: Math.min(call.slidingWindowSize, NO_WINDOW),
      numSinkTokens: call.numSinkTokens,
      queryScale: softCap === undefined ? scale * Math.LOG2E : scale / softCap,
      capScale: softCap === undefined ? 0 : softCap * Math.LOG2E,
      numPartitions: call.numPartitions,
      selectionTableAt: indexPlaces.selectionTable ?? 0,
      ...selection,
    }),
  );
  const scores = new Float32Array(4 * sinkVecs(shape));
  for (let head = 0; head < sinkScores.length; head++) scores[head] = sinkScores[head] * Math.LOG2E;
  packed.push(new Uint8Array(scores.buffer));
  return concatenated(packed);
}

/** vec4 of `Params.sinkScores`: WGSL has no array of none. */
export function sinkVecs({ learnedSinks, numQueryHeads }: FullAttentionShape): number {
  return learnedSinks ? Math.ceil(numQueryHeads / 4) : 1;
}

function concatenated(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
