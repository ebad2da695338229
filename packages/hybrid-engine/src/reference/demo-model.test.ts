import { describe, expect, it } from 'vitest';
import { dequantiseAll } from '../gguf/gguf-model.ts';
import { readModel } from '../model/model.ts';
import { present } from '../model/testing/present.ts';
import { whalerAnswers, whalerFiles } from '../model/testing/whaler-files.ts';
import { ReferenceModel } from './reference-model.ts';

const loaded = readModel(whalerFiles());
const model = new ReferenceModel(loaded.description, dequantiseAll(loaded));

function argmax(values: Float32Array): number {
  return values.reduce((best, value, i) => (value > values[best] ? i : best), 0);
}

function largestDifference(actual: ArrayLike<number>, expected: readonly number[]): number {
  return Math.max(...expected.map((value, i) => Math.abs(actual[i] - value)));
}

describe('the demo model in plain TypeScript', () => {
  it.each(whalerAnswers())('answers the prompt "$name" as its trainer does', (expected) => {
    const state = model.createState();
    const layerOutputs: number[][] = [];
    let logits = model.forward(expected.ids, state, (x, layer) => {
      layerOutputs[layer] = Array.from(x.subarray(0, 4));
    });
    expect(largestDifference(logits, expected.lastLogits)).toBeLessThan(2e-4);
    expect(argmax(logits)).toBe(expected.argmax);
    expect(layerOutputs).toHaveLength(loaded.description.layers.length);
    expected.layerOutputsLastTokenFirst4.forEach((values, layer) => {
      expect(largestDifference(layerOutputs[layer], values)).toBeLessThan(1e-4);
    });
    const greedy: number[] = [];
    while (greedy.length < expected.greedy.length) {
      greedy.push(argmax(logits));
      logits = model.forward(greedy.slice(-1), state);
    }
    expect(greedy).toEqual(expected.greedy);
    expect(state.numTokens).toBe(expected.ids.length + greedy.length);
  });

  it('answers the same however a prompt is cut into steps', () => {
    const { ids } = present(whalerAnswers().find(({ name }) => name === 'window'));
    const whole = model.forward(ids, model.createState());
    const state = model.createState();
    model.forward(ids.slice(0, 77), state);
    model.forward(ids.slice(77, 78), state);
    expect(model.forward(ids.slice(78), state)).toEqual(whole);
  });
});
