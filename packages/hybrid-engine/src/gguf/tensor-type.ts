/** Element types that can be made into numbers here. */
export type GgufTensorType = 'F32' | 'F16' | 'BF16' | 'Q8_0' | 'Q4_0';

/** How the elements of a row lie in blocks: whole blocks only, one behind the other. */
export interface BlockLayout {
  readonly elements: number;
  readonly bytes: number;
}

/** Elements that share one scale in `Q8_0` and `Q4_0`. */
export const QUANTISED_BLOCK_ELEMENTS = 32;

/**
 * Blocks of each type.
 * @see ggml src/ggml-common.h, `block_q4_0` and `block_q8_0`: a binary16 scale, then 32 values of 4 or 8 bits
 */
export const BLOCK_LAYOUTS: Readonly<Record<GgufTensorType, BlockLayout>> = {
  F32: { elements: 1, bytes: 4 },
  F16: { elements: 1, bytes: 2 },
  BF16: { elements: 1, bytes: 2 },
  Q8_0: { elements: QUANTISED_BLOCK_ELEMENTS, bytes: 2 + QUANTISED_BLOCK_ELEMENTS },
  Q4_0: { elements: QUANTISED_BLOCK_ELEMENTS, bytes: 2 + QUANTISED_BLOCK_ELEMENTS / 2 },
};

/** Types by their number in the file. @see ggml include/ggml.h, `ggml_type` */
const TYPES: ReadonlyMap<number, GgufTensorType> = new Map([
  [0, 'F32'],
  [1, 'F16'],
  [2, 'Q4_0'],
  [8, 'Q8_0'],
  [30, 'BF16'],
]);

/** Names of types that people's files have and this reader does not take, so that the error can name them. */
const OTHER_TYPES: ReadonlyMap<number, string> = new Map([
  [3, 'Q4_1'],
  [6, 'Q5_0'],
  [7, 'Q5_1'],
  [10, 'Q2_K'],
  [11, 'Q3_K'],
  [12, 'Q4_K'],
  [13, 'Q5_K'],
  [14, 'Q6_K'],
]);

/** The type of that number; undefined when this reader does not take it. */
export function tensorType(id: number): GgufTensorType | undefined {
  return TYPES.get(id);
}

/** What to call a type that is not taken. */
export function nameOfType(id: number): string {
  return OTHER_TYPES.get(id) ?? `number ${id}`;
}
