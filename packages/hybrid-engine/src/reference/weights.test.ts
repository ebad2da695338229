import { expect, it } from 'vitest';
import { ModelError } from '../model/model-error.ts';
import { ReferenceWeights } from './weights.ts';

const weights = new ReferenceWeights(
  new Map([
    ['up.weight', Float32Array.of(1, 2, 3, 4, 5, 6)],
    ['up.bias', Float32Array.of(10, 20, 30)],
    ['whole.weight', Float32Array.of(1, 1, 2, 2)],
    ['head.weight', Float32Array.of(1, 3)],
  ]),
  0,
);
const x = Float32Array.of(3, 4, 6, 8);

it('projects, with a bias where there is one', () => {
  expect([...weights.project('up', Float32Array.of(1, -1))]).toEqual([-1, -1, -1]);
  expect([...weights.project('up', Float32Array.of(1, -1), true)]).toEqual([9, 19, 29]);
});

it('norms a row as one, group by group with weights of their own, or head by head with the same', () => {
  const rounded = (values: Float32Array) => Array.from(values, (value) => Math.round(value * 1e4) / 1e4);
  const row = Math.sqrt((9 + 16 + 36 + 64) / 4);
  expect(rounded(weights.norm('whole', x))).toEqual([3 / row, 4 / row, 12 / row, 16 / row].map((v) => Math.round(v * 1e4) / 1e4));
  const [a, b] = [3 / Math.sqrt(12.5), 4 / Math.sqrt(12.5)].map((v) => Math.round(v * 1e4) / 1e4);
  expect(rounded(weights.norm('whole', x, 2))).toEqual([a, b, 1.6971, 2.2627]);
  expect(rounded(weights.norm('head', x, 2))).toEqual([a, 3.3941, a, 3.3941]);
});

it('names a tensor that is missing', () => {
  expect(() => weights.project('down', x)).toThrow(ModelError);
});
