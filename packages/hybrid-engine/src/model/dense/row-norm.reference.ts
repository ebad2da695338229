import { silu } from '../vector-math.ts';

/** What `recordRowNorm` computes from, as plain rows side by side. */
export interface RowNormReferenceOperands {
  /** Rows of `[numRuns, runSize]`; unchanged. */
  values: Float32Array;
  runSize: number;
  /** Weights of the runs of a row, one behind the other; taken from the start again where there are fewer. */
  weight: Float32Array;
  eps: number;
  gate?: Float32Array;
  added?: { rows: Float32Array; scale: number };
}

/** RMS norms as their definition says it. Returns new rows. */
export function rowNormReference({ values, runSize, weight, eps, gate, added }: RowNormReferenceOperands): Float32Array {
  const normed = Float64Array.from(added?.rows ?? values, (value, i) => (gate ? value * silu(gate[i]) : value));
  const result = new Float32Array(values.length);
  for (let begin = 0; begin < normed.length; begin += runSize) {
    const meanSquare = normed.subarray(begin, begin + runSize).reduce((sum, value) => sum + value * value, 0) / runSize;
    for (let i = begin; i < begin + runSize; i++) {
      const norm = (normed[i] / Math.sqrt(meanSquare + eps)) * weight[i % weight.length];
      result[i] = added ? values[i] + added.scale * norm : norm;
    }
  }
  return result;
}
