import type { GgufTensorType } from '../gguf/tensor-type.ts';

/** One tensor of a weight file, as the file stores it. `dequantise` makes numbers of it, when they are asked for. */
export interface WeightTensor {
  readonly name: string;
  readonly type: GgufTensorType;
  /** Outermost first: a projection is `[out, in]`. */
  readonly shape: readonly number[];
  readonly numElements: number;
  /** Little-endian elements or blocks of the type, row-major: a view of the file's bytes, at no particular alignment. */
  readonly bytes: Uint8Array;
}
