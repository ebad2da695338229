import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dequantise } from './dequantise.ts';
import { singles } from './testing/gguf-builder.ts';
import { quantiseQ4, quantiseQ8 } from './testing/quantise.ts';

/** 1, 2 and -0.5 as binary16. */
const ONE = [0x00, 0x3c];
const TWO = [0x00, 0x40];
const MINUS_HALF = [0x00, 0xb8];

const blockValues = fc
  .integer({ min: 1, max: 3 })
  .chain((numBlocks) =>
    fc.tuple(
      fc.constantFrom(1, 0.01, 40),
      fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: 32 * numBlocks, maxLength: 32 * numBlocks }),
    ),
  );

/** Half of a step of the codes, and what a binary16 scale is off by at most (2^-11 of the largest magnitude, or a subnormal step). */
const bound = (largest: number, steps: number) => largest / steps / 2 + largest * 2 ** -10 + steps * 2 ** -24;

describe('known bytes', () => {
  it('of F32 are the values themselves, NaN and infinities too', () => {
    const bytes = singles(1.5, -0, Number.NaN, Number.POSITIVE_INFINITY);
    expect(dequantise({ type: 'F32', numElements: 4, bytes })).toEqual(Float32Array.of(1.5, -0, Number.NaN, Infinity));
  });

  it('of F16 and BF16 become binary32', () => {
    const f16 = Uint8Array.of(...ONE, ...MINUS_HALF, 0x01, 0x00);
    expect(dequantise({ type: 'F16', numElements: 3, bytes: f16 })).toEqual(Float32Array.of(1, -0.5, 2 ** -24));
    expect(dequantise({ type: 'BF16', numElements: 2, bytes: Uint8Array.of(0x80, 0x3f, 0x20, 0xc1) })).toEqual(
      Float32Array.of(1, -10),
    );
  });

  it('of Q8_0 are signed codes times the scale of their block', () => {
    const codes = Array.from({ length: 32 }, (_, i) => i * 8 - 128);
    const bytes = Uint8Array.of(...TWO, ...codes, ...MINUS_HALF, ...codes);
    const expected = Float32Array.from([...codes.map((q) => 2 * q), ...codes.map((q) => -0.5 * q)]);
    expect(dequantise({ type: 'Q8_0', numElements: 64, bytes })).toEqual(expected);
  });

  it('of Q4_0 are low halves first, then high halves, less 8', () => {
    const bytes = Uint8Array.of(...TWO, ...Array.from({ length: 16 }, (_, i) => i | ((15 - i) << 4)));
    const low = Array.from({ length: 16 }, (_, i) => 2 * (i - 8));
    const high = Array.from({ length: 16 }, (_, i) => 2 * (7 - i));
    expect([...dequantise({ type: 'Q4_0', numElements: 32, bytes })]).toEqual([...low, ...high]);
  });

  it('may begin at any byte', () => {
    const bytes = Uint8Array.of(0, 0, 0, ...singles(3, 4)).subarray(3);
    expect([...dequantise({ type: 'F32', numElements: 2, bytes })]).toEqual([3, 4]);
  });
});

describe('what was quantised comes back within half a step', () => {
  it.each([
    ['Q8_0', quantiseQ8, 127],
    ['Q4_0', quantiseQ4, 7],
  ] as const)('of %s', (type, quantise, steps) => {
    fc.assert(
      fc.property(blockValues, ([magnitude, units]) => {
        const values = units.map((unit) => unit * magnitude);
        const found = dequantise({ type, numElements: values.length, bytes: quantise(values) });
        for (let i = 0; i < values.length; i++) {
          const begin = i - (i % 32);
          const largest = Math.max(...values.slice(begin, begin + 32).map(Math.abs));
          expect(Math.abs(found[i] - values[i])).toBeLessThanOrEqual(bound(largest, steps));
        }
      }),
    );
  });
});
