import { gelu, silu } from '../vector-math.ts';

/** What `recordMatmul` computes from, as plain rows side by side. */
export interface MatmulReferenceOperands {
  numTokens: number;
  /** `[numTokens, inSize]`. */
  input: Float32Array;
  norm?: { weight: Float32Array; eps: number };
  /** `[outSize, inSize]`, for a gated epilogue `[2 * outSize, inSize]`: the gate's rows, then those of up. */
  weight: Float32Array;
  outSize: number;
  /** One value for each row of `weight`. */
  bias?: Float32Array;
  /** `[numTokens, outSize]`, what `add` adds to. */
  output?: Float32Array;
  epilogue?: 'store' | 'add' | 'swiglu' | 'geglu';
  scale?: number;
}

/** The dense layer as its definition says it, with sums in double precision. Returns `[numTokens, outSize]`. */
export function matmulReference(operands: MatmulReferenceOperands): Float32Array {
  const { numTokens, input, norm, weight, bias, outSize, output, epilogue = 'store', scale = 1 } = operands;
  const inSize = input.length / numTokens;
  const result = new Float32Array(numTokens * outSize);
  for (let t = 0; t < numTokens; t++) {
    const row = normedRow(input.subarray(t * inSize, (t + 1) * inSize), norm);
    const product = (o: number) => row.reduce((sum, value, i) => sum + value * weight[o * inSize + i], bias?.[o] ?? 0);
    for (let o = 0; o < outSize; o++) {
      const at = t * outSize + o;
      if (epilogue === 'swiglu') result[at] = scale * silu(product(o)) * product(outSize + o);
      else if (epilogue === 'geglu') result[at] = scale * gelu(product(o)) * product(outSize + o);
      else result[at] = scale * product(o) + (epilogue === 'add' ? (output?.[at] ?? 0) : 0);
    }
  }
  return result;
}

function normedRow(input: Float32Array, norm: MatmulReferenceOperands['norm']): Float64Array {
  const row = Float64Array.from(input);
  if (norm === undefined) return row;
  const meanSquare = row.reduce((sum, value) => sum + value * value, 0) / row.length;
  return row.map((value, i) => (value / Math.sqrt(meanSquare + norm.eps)) * norm.weight[i]);
}
