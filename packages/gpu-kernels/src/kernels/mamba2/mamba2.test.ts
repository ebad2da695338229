import { describe, expect, test } from 'vitest';
import { KernelError } from '../../errors/kernel-error.ts';
import { causalConvReference } from '../recurrent/causal-conv.reference.ts';
import type { ReferenceRows } from '../recurrent/pages.reference.ts';
import { randomNumbers } from '../testing/guarded-memory-rig.ts';
import { ssmReference } from './mamba2.reference.ts';
import { mamba2Layout } from './mamba2-shape.ts';
import { packHeadParams } from './ssm.ts';

const rows = (values: number[][]): ReferenceRows => ({
  data: Float64Array.from(values.flat()),
  offsetWords: 0,
  strideWords: values[0].length,
});
const emptyRows = (numRows: number, strideWords: number): ReferenceRows => ({
  data: new Float64Array(numRows * strideWords),
  offsetWords: 0,
  strideWords,
});
const silu = (x: number) => x / (1 + Math.exp(-x));

describe('the reference convolution', () => {
  test('sees the tail before the first token, and leaves the last rows behind', () => {
    const tail = { pool: Float64Array.from([-1, 1, 2]), baseWords: 1, strideWords: 2, pageIndex: [0] };
    const output = emptyRows(2, 1);
    causalConvReference(
      { numChannels: 1, width: 3 },
      { tokensPerRequest: [2], input: rows([[3], [4]]), weight: [100, 10, 1], bias: [0.5], tail, output },
    );
    expect([...output.data]).toEqual([silu(123.5), silu(234.5)]);
    expect([...tail.pool]).toEqual([-1, 3, 4]);
  });

  test('keeps part of the old tail after a chunk shorter than it', () => {
    const tail = { pool: Float64Array.from([1, 2, 3]), baseWords: 0, strideWords: 3, pageIndex: [0] };
    causalConvReference(
      { numChannels: 1, width: 4 },
      { tokensPerRequest: [1], input: rows([[9]]), weight: [1, 1, 1, 1], bias: [0], tail, output: emptyRows(1, 1) },
    );
    expect([...tail.pool]).toEqual([2, 3, 9]);
  });

  test('gives each request its own page and rows', () => {
    const tail = { pool: Float64Array.from([10, 20, 30, 40]), baseWords: 0, strideWords: 2, pageIndex: [1, 0] };
    const output = emptyRows(2, 2);
    causalConvReference(
      { numChannels: 2, width: 2 },
      {
        tokensPerRequest: [1, 1],
        input: rows([
          [1, 2],
          [3, 4],
        ]),
        weight: [1, 0, 1, 0],
        bias: [0, 0],
        tail,
        output,
      },
    );
    expect([...output.data]).toEqual([silu(30), silu(40), silu(10), silu(20)]);
    expect([...tail.pool]).toEqual([3, 4, 1, 2]);
  });
});

describe('the reference recurrence', () => {
  const shape = { numHeads: 1, headDim: 2, stateSize: 2, numGroups: 1 };
  // softplus(0) = log 2, and a rate of 1 / log 2 makes the decay exactly 1 / e.
  const head = { dtBias: [0], aLog: [-Math.log(Math.LN2)], dSkip: [0.25] };

  test('decays the state, adds dt x B, and reads it out with C', () => {
    const state = { pool: Float64Array.from([1, 2, 3, 4]), baseWords: 0, strideWords: 4, pageIndex: [0] };
    const y = emptyRows(1, 2);
    ssmReference(shape, { tokensPerRequest: [1], xBC: rows([[5, 6, 7, 8, 1, 10]]), dt: rows([[0]]), ...head, state, y });
    const expected = [1, 2, 3, 4].map((h, i) => h / Math.E + Math.LN2 * [5, 6][i >> 1] * [7, 8][i & 1]);
    for (let i = 0; i < 4; i++) expect(state.pool[i]).toBeCloseTo(expected[i], 12);
    expect(y.data[0]).toBeCloseTo(expected[0] + 10 * expected[1] + 0.25 * 5, 12);
    expect(y.data[1]).toBeCloseTo(expected[2] + 10 * expected[3] + 0.25 * 6, 12);
  });

  test('reads B and C of the group that a head belongs to', () => {
    const y = emptyRows(1, 4);
    ssmReference(
      { numHeads: 4, headDim: 1, stateSize: 1, numGroups: 2 },
      {
        tokensPerRequest: [1],
        xBC: rows([[1, 1, 1, 1, 2, 3, 5, 7]]),
        dt: rows([[0, 0, 0, 0]]),
        dtBias: [0, 0, 0, 0],
        aLog: [0, 0, 0, 0],
        dSkip: [0, 0, 0, 0],
        state: { pool: new Float64Array(0), baseWords: 0, strideWords: 4, pageIndex: [-1] },
        y,
      },
    );
    for (const [i, expected] of [2 * 5, 2 * 5, 3 * 7, 3 * 7].entries()) expect(y.data[i]).toBeCloseTo(expected * Math.LN2, 12);
  });
});

describe('a sequence', () => {
  const shape = { numHeads: 4, headDim: 3, stateSize: 5, numGroups: 2 };
  const numTokens = 11;
  const numChannels = 12 + 20;

  /** Convolution and recurrence over calls of so many tokens. */
  function run(tokensPerCall: number[]) {
    const random = randomNumbers(7);
    const make = (length: number) => Float64Array.from({ length }, random);
    const convShape = { numChannels, width: 4 };
    const input = make(numTokens * numChannels);
    const dt = make(numTokens * shape.numHeads);
    const weight = make(numChannels * 4);
    const bias = make(numChannels);
    const [dtBias, aLog, dSkip] = [make(4), make(4), make(4)];
    const xBC = new Float64Array(numTokens * numChannels);
    const y = new Float64Array(numTokens * 12);
    const tail = { pool: new Float64Array(3 * numChannels), baseWords: 0, strideWords: 3 * numChannels, pageIndex: [0] };
    const state = { pool: new Float64Array(12 * 5), baseWords: 0, strideWords: 60, pageIndex: [0] };
    let first = 0;
    for (const tokens of tokensPerCall) {
      const from = (data: Float64Array, strideWords: number) => ({ data, offsetWords: first * strideWords, strideWords });
      const rowsOfXBC = from(xBC, numChannels);
      causalConvReference(convShape, {
        tokensPerRequest: [tokens],
        input: from(input, numChannels),
        weight,
        bias,
        tail,
        output: rowsOfXBC,
      });
      ssmReference(shape, {
        tokensPerRequest: [tokens],
        xBC: rowsOfXBC,
        dt: from(dt, 4),
        dtBias,
        aLog,
        dSkip,
        state,
        y: from(y, 12),
      });
      first += tokens;
    }
    return { y, tail: tail.pool, state: state.pool };
  }

  test('gives the same wherever it is cut in two', () => {
    const whole = run([numTokens]);
    for (let cut = 0; cut <= numTokens; cut++) expect(run([cut, numTokens - cut])).toEqual(whole);
  });

  test('gives the same token by token', () => {
    expect(run(new Array(numTokens).fill(1))).toEqual(run([numTokens]));
  });
});

describe('the layout of a layer', () => {
  const demo = { numHeads: 8, headDim: 32, stateSize: 16, numGroups: 1, convWidth: 4 };

  test('follows from its shape', () => {
    expect(mamba2Layout(demo)).toEqual({
      innerSize: 256,
      numChannels: 288,
      tailWords: 3 * 288,
      stateWords: 8 * 32 * 16,
      projection: { rowWords: 552, z: 0, xBC: 256, dt: 544 },
    });
  });

  test.each([{ numHeads: 0 }, { headDim: 1.5 }, { stateSize: 1025 }, { numGroups: 3 }, { convWidth: 1 }, { convWidth: 5 }])(
    'refuses a shape with %o',
    (change) => {
      expect(() => mamba2Layout({ ...demo, ...change })).toThrow(KernelError);
    },
  );

  test('packs the parameters of the heads side by side', () => {
    expect([...packHeadParams({ dtBias: [1, 2], aLog: [3, 4], dSkip: [5, 6] })]).toEqual([1, 2, 3, 4, 5, 6]);
    expect(() => packHeadParams({ dtBias: [1, 2], aLog: [3], dSkip: [5, 6] })).toThrow(KernelError);
  });
});
