const bits = new Uint32Array(1);
const value = new Float32Array(bits.buffer);

/** The value of a bfloat16 number given by its 16 bits: the upper half of a binary32. */
export function decodeBfloat16(half: number): number {
  bits[0] = half << 16;
  return value[0];
}
