/** RMS norm of gated rows as its definition says it. All arrays are rows of the weight's length; returns new rows. */
export function gatedNormReference(values: Float32Array, gate: Float32Array, weight: Float32Array, eps: number): Float32Array {
  const rowSize = weight.length;
  const gated = Float64Array.from(values, (value, i) => (value * gate[i]) / (1 + Math.exp(-gate[i])));
  const result = new Float32Array(values.length);
  for (let begin = 0; begin < gated.length; begin += rowSize) {
    const row = gated.subarray(begin, begin + rowSize);
    const meanSquare = row.reduce((sum, value) => sum + value * value, 0) / rowSize;
    row.forEach((value, i) => {
      result[begin + i] = (value / Math.sqrt(meanSquare + eps)) * weight[i];
    });
  }
  return result;
}
