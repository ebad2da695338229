import { expect, it } from 'vitest';
import { dequantise } from '../../gguf/dequantise.ts';
import { halfTensor, RandomValues, singleTensor } from '../testing/random-values.ts';
import { packBias, packMatrix } from './matrix.ts';

const values = new RandomValues(2);

it('weights become columns, filled up to whole quads', () => {
  const tensor = singleTensor('w', Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12), [3, 4]);
  const { data, ...layout } = packMatrix([tensor]);
  expect(layout).toEqual({ format: 'f32', inSize: 4, numColumns: 3, order: 'plain' });
  expect([...data]).toEqual([1, 5, 9, 0, 2, 6, 10, 0, 3, 7, 11, 0, 4, 8, 12, 0]);
});

it('several matrices of one input come to lie side by side, in 16 bits as they are', () => {
  const parts = [values.f16(2 * 4), values.f16(3 * 4)];
  const { data, format, numColumns } = packMatrix([halfTensor('q', parts[0], [2, 4]), halfTensor('k', parts[1], [3, 4])]);
  expect([format, numColumns]).toEqual(['f16', 5]);
  for (let i = 0; i < 4; i++) {
    expect([...data.subarray(i * 8, i * 8 + 8)]).toEqual([
      ...[0, 1].map((o) => parts[0].bits[o * 4 + i]),
      ...[0, 1, 2].map((o) => parts[1].bits[o * 4 + i]),
      0,
      0,
      0,
    ]);
  }
});

it('one matrix in another format brings all of them to f32, exactly', () => {
  const half = halfTensor('a', values.f16(4 * 4), [4, 4]);
  const { data, format } = packMatrix([half, singleTensor('b', values.f32(4 * 4), [4, 4])]);
  expect(format).toBe('f32');
  const expected = dequantise(half);
  for (let o = 0; o < 4; o++) for (let i = 0; i < 4; i++) expect(data[i * 8 + o]).toBe(expected[o * 4 + i]);
});

it('gate and up take turns by four columns', () => {
  const column = (begin: number) =>
    singleTensor(
      'w',
      Float32Array.from({ length: 8 * 4 }, (_, at) => begin + Math.floor(at / 4)),
      [8, 4],
    );
  const { data, numColumns } = packMatrix([column(0), column(100)], 'gate-up');
  expect(numColumns).toBe(16);
  for (let i = 0; i < 4; i++) {
    expect([...data.subarray(i * 16, i * 16 + 16)]).toEqual([0, 1, 2, 3, 100, 101, 102, 103, 4, 5, 6, 7, 104, 105, 106, 107]);
  }
});

it('biases stand in the order of their columns', () => {
  const bias = (...numbers: number[]) => singleTensor('b', Float32Array.from(numbers), [numbers.length]);
  expect([...packBias([bias(1, 2), bias(3)])]).toEqual([1, 2, 3, 0]);
  expect([...packBias([bias(1, 2, 3, 4), bias(5, 6, 7, 8)], 'gate-up')]).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  const eight = packBias([bias(1, 2, 3, 4, 5, 6, 7, 8), bias(11, 12, 13, 14, 15, 16, 17, 18)], 'gate-up');
  expect([...eight]).toEqual([1, 2, 3, 4, 11, 12, 13, 14, 5, 6, 7, 8, 15, 16, 17, 18]);
});
