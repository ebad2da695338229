import { describe, expect, it } from 'vitest';
import { decodeBfloat16 } from './bfloat16.ts';

describe('bfloat16', () => {
  it.each([
    [0x3f80, 1],
    [0xc049, -3.140625],
    [0x0001, 2 ** -133],
    [0x7f80, Number.POSITIVE_INFINITY],
    [0xff80, Number.NEGATIVE_INFINITY],
  ])('decodes %i to %d', (half, value) => {
    expect(decodeBfloat16(half)).toBe(value);
  });

  it('keeps NaN', () => {
    expect(decodeBfloat16(0x7fc0)).toBeNaN();
  });
});
