/** Product of two runs of `length` values, summed in double precision. */
export function dot(a: Float32Array, aOffset: number, b: Float32Array, bOffset: number, length: number): number {
  let total = 0;
  for (let i = 0; i < length; i++) total += a[aOffset + i] * b[bOffset + i];
  return total;
}

/** `out = weight x`, with weight `[out, in]`. */
export function multiply(weight: Float32Array, x: Float32Array, out: Float32Array, inSize: number): void {
  for (let o = 0; o < out.length; o++) out[o] = dot(weight, o * inSize, x, 0, inSize);
}

export function silu(x: number): number {
  return x / (1 + Math.exp(-x));
}

export function softplus(x: number): number {
  return x > 20 ? x : Math.log1p(Math.exp(x));
}

/** The tanh approximation of GELU. */
export function gelu(x: number): number {
  return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
}
