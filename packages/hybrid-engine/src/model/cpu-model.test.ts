import { describe, expect, it } from 'vitest';
import { CpuModel } from './cpu-model.ts';
import { readModel } from './model.ts';
import { ModelError } from './model-error.ts';
import { present } from './testing/present.ts';
import { whalerAnswers, whalerFiles } from './testing/whaler-files.ts';

const { config, tensors } = readModel(whalerFiles());
const model = new CpuModel(config, tensors);

function argmax(values: Float32Array): number {
  return values.reduce((best, value, i) => (value > values[best] ? i : best), 0);
}

function largestDifference(actual: ArrayLike<number>, expected: readonly number[]): number {
  return Math.max(...expected.map((value, i) => Math.abs(actual[i] - value)));
}

describe('the demo model in plain TypeScript', () => {
  it.each(whalerAnswers())('answers the prompt "$name" as its trainer does', (expected) => {
    const state = model.createState();
    let output = model.forward(expected.ids, state);
    expect(largestDifference(output.logits, expected.lastLogits)).toBeLessThan(2e-4);
    expect(argmax(output.logits)).toBe(expected.argmax);
    expect(output.layerOutputs).toHaveLength(config.layerPattern.length);
    expected.layerOutputsLastTokenFirst4.forEach((values, layer) => {
      expect(largestDifference(output.layerOutputs[layer], values)).toBeLessThan(1e-4);
    });
    const greedy: number[] = [];
    while (greedy.length < expected.greedy.length) {
      greedy.push(argmax(output.logits));
      output = model.forward(greedy.slice(-1), state);
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

  it('refuses no tokens and ids outside of the vocabulary, and the sequence has not moved', () => {
    const state = model.createState();
    for (const tokens of [[], [5, 1024], [-1], [1.5]]) expect(() => model.forward(tokens, state)).toThrow(ModelError);
    expect(state.numTokens).toBe(0);
    expect(model.forward([5], state)).toEqual(model.forward([5], model.createState()));
  });
});
