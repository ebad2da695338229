import { describe, expect, it } from 'vitest';
import { decodeBfloat16, decodeFloat16 } from './float16.ts';

describe('binary16', () => {
  it('decodes every finite pattern to the value of its fields', () => {
    for (let half = 0; half < 0x10000; half++) {
      const exponent = (half >> 10) & 31;
      if (exponent === 31) continue;
      const fraction = (half & 1023) / 1024;
      const magnitude = exponent === 0 ? fraction * 2 ** -14 : (1 + fraction) * 2 ** (exponent - 15);
      expect(decodeFloat16(half)).toBe(half & 0x8000 ? -magnitude : magnitude);
    }
  });

  it('decodes infinities and keeps NaN', () => {
    expect(decodeFloat16(0x7c00)).toBe(Number.POSITIVE_INFINITY);
    expect(decodeFloat16(0xfc00)).toBe(Number.NEGATIVE_INFINITY);
    for (const half of [0x7c01, 0x7e00, 0xffff]) expect(decodeFloat16(half)).toBeNaN();
  });

  it('tells zero from minus zero', () => {
    expect(Object.is(decodeFloat16(0), 0)).toBe(true);
    expect(Object.is(decodeFloat16(0x8000), -0)).toBe(true);
  });
});

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
