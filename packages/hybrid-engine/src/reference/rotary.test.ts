import { describe, expect, it } from 'vitest';
import type { RotaryDescription } from '../description/rotary.ts';
import { turn } from './rotary.ts';

/** Turns 90 degrees a token: the angle of the first pair is the position. */
const QUARTER: RotaryDescription = {
  pairs: 'halves',
  base: 10_000,
  dimensions: 4,
  positionScale: 2 / Math.PI,
  hasFactors: false,
};

function turned(heads: number[], position: number, changes: Partial<RotaryDescription> = {}, factors?: Float32Array): number[] {
  const values = Float32Array.from(heads);
  turn(values, heads.length / 2, position, { ...QUARTER, ...changes }, factors);
  return Array.from(values, (value) => Math.round(value * 1e3) / 1e3 + 0);
}

describe('turning heads by their position', () => {
  const heads = [1, 2, 3, 4, 5, 6, 7, 8];

  it('pairs values of two halves, or those side by side, in every head', () => {
    // The second pair turns by a hundredth of the first: cos 0.0157 = 0.99988, sin = 0.01571.
    expect(turned(heads, 1)).toEqual([-3, 1.937, 1, 4.031, -7, 5.874, 5, 8.093]);
    expect(turned(heads, 1, { pairs: 'interleaved' })).toEqual([-2, 1, 2.937, 4.047, -6, 5, 6.873, 8.109]);
  });

  it('leaves the first token as it is, and the values behind the dimensions', () => {
    expect(turned(heads, 0)).toEqual(heads);
    expect(turned(heads, 1, { dimensions: 2 })).toEqual([-2, 1, 3, 4, -6, 5, 7, 8]);
  });

  it('divides positions by their scale and angles by their factors', () => {
    expect(turned(heads, 2, { positionScale: 4 / Math.PI })).toEqual(turned(heads, 1));
    const both = turned(heads, 4, {}, Float32Array.of(4, 4));
    expect(both).toEqual(turned(heads, 1));
    expect(turned(heads, 1, {}, Float32Array.of(1, 1e9))).toEqual([-3, 2, 1, 4, -7, 6, 5, 8]);
  });
});
