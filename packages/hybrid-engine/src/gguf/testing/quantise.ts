/** The bits of the binary16 number nearest to `value`, for scales: positive, normal, and in range. */
export function encodeScale(value: number): number {
  if (value === 0) return 0;
  const exponent = Math.min(15, Math.max(-14, Math.floor(Math.log2(value))));
  return ((exponent + 15) << 10) + Math.round((value / 2 ** exponent - 1) * 1024);
}

/** Blocks of 32 values as Q8_0: the scale is the largest magnitude over 127. */
export function quantiseQ8(values: readonly number[]): Uint8Array {
  return blocks(values, (block) => {
    const scale = Math.max(...block.map(Math.abs)) / 127;
    const bits = encodeScale(scale);
    const codes = block.map((value) => (scale === 0 ? 0 : Math.max(-127, Math.min(127, Math.round(value / scale)))) & 0xff);
    return [bits & 0xff, bits >> 8, ...codes];
  });
}

/** Blocks of 32 values as Q4_0, with codes around 8: the scale is the largest magnitude over 7. */
export function quantiseQ4(values: readonly number[]): Uint8Array {
  return blocks(values, (block) => {
    const scale = Math.max(...block.map(Math.abs)) / 7;
    const bits = encodeScale(scale);
    const codes = block.map((value) => (scale === 0 ? 8 : 8 + Math.max(-8, Math.min(7, Math.round(value / scale)))));
    return [bits & 0xff, bits >> 8, ...codes.slice(0, 16).map((low, i) => low | (codes[16 + i] << 4))];
  });
}

function blocks(values: readonly number[], write: (block: number[]) => number[]): Uint8Array {
  const bytes: number[] = [];
  for (let i = 0; i < values.length; i += 32) bytes.push(...write(values.slice(i, i + 32)));
  return Uint8Array.from(bytes);
}
