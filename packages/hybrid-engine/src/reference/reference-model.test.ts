import { describe, expect, it } from 'vitest';
import { dequantise } from '../gguf/dequantise.ts';
import { dequantiseAll, readGgufModel } from '../gguf/gguf-model.ts';
import type { GgufValue } from '../gguf/metadata.ts';
import { buildGguf, type TypedValue } from '../gguf/testing/gguf-builder.ts';
import { ORACLE_MODELS, ORACLE_TOLERANCE, type OracleModel, oracleAnswers, oracleFile } from '../gguf/testing/oracle-models.ts';
import { quantiseQ4, quantiseQ8 } from '../gguf/testing/quantise.ts';
import { ModelError } from '../model/model-error.ts';
import { logSoftmax } from '../sampling/testing/log-softmax.ts';
import { ReferenceModel, type ReferenceState } from './reference-model.ts';

function load(name: OracleModel): ReferenceModel {
  const model = readGgufModel(oracleFile(name));
  return new ReferenceModel(model.description, dequantiseAll(model));
}

function argmax(values: Float32Array): number {
  return values.reduce((best, value, i) => (value > values[best] ? i : best), 0);
}

interface Answer {
  greedy: number[];
  logProbabilities: number[];
}

/** Continues greedily. */
function answer(model: ReferenceModel, prompt: readonly number[], state: ReferenceState, numSteps: number): Answer {
  const greedy: number[] = [];
  const logProbabilities: number[] = [];
  let logits = model.forward(prompt, state);
  for (;;) {
    logProbabilities.push(...logSoftmax(logits));
    greedy.push(argmax(logits));
    if (greedy.length === numSteps) return { greedy, logProbabilities };
    logits = model.forward(greedy.slice(-1), state);
  }
}

function largestDifference(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  expect(actual.length).toBe(expected.length);
  let largest = 0;
  for (let i = 0; i < actual.length; i++) {
    const difference = Math.abs(actual[i] - expected[i]);
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

describe.each(ORACLE_MODELS)('%s in plain TypeScript', (name) => {
  const model = load(name);
  const answers = oracleAnswers(name);

  it.each([0, 1, 2, 3, 4, 5])('answers prompt %i as llama.cpp does, token for token', (i) => {
    const { prompt, greedy, logProbabilities } = answers[i];
    const found = answer(model, prompt, model.createState(), greedy.length);
    expect(found.greedy).toEqual(greedy);
    expect(largestDifference(found.logProbabilities, logProbabilities)).toBeLessThan(ORACLE_TOLERANCE[name]);
  });

  it('goes on from a kept prefix to the same answers, and leaves the prefix as it was', () => {
    const [, , whole, fork, , longer] = answers;
    const shared = fork.prompt.findIndex((id, i) => id !== whole.prompt[i]);
    expect(shared).toBe(48);
    const prefix = model.createState();
    model.forward(whole.prompt.slice(0, shared), prefix);
    for (const { prompt, greedy } of [whole, fork, longer]) {
      expect(answer(model, prompt.slice(shared), prefix.clone(), 8).greedy).toEqual(greedy.slice(0, 8));
    }
    expect(prefix.numTokens).toBe(shared);
  });
});

it.each([
  ['Q8_0', 8, quantiseQ8, 0.999],
  ['Q4_0', 2, quantiseQ4, 0.8],
] as const)('answers from weights in %s much as from their f32', (_, type, quantise, least) => {
  const exact = readGgufModel(oracleFile('llama-103'));
  const tensors = Array.from(exact.tensors.values(), ({ name, shape, bytes }) => {
    const sizes = [...shape].reverse();
    if (shape.length === 1) return { name, sizes, type: 0, bytes };
    return { name, sizes, type, bytes: quantise([...dequantise({ type: 'F32', numElements: shape[0] * shape[1], bytes })]) };
  });
  const metadata = Object.fromEntries(Array.from(exact.metadata).flatMap(([key, value]) => typedValue(key, value)));
  const model = readGgufModel(buildGguf({ metadata, tensors }));
  expect(model.description).toEqual(exact.description);
  const quantised = new ReferenceModel(model.description, dequantiseAll(model));
  const [{ prompt, logProbabilities }] = oracleAnswers('llama-103');
  const found = answer(quantised, prompt, quantised.createState(), 1).logProbabilities;
  const alike = correlation(found, logProbabilities.subarray(0, found.length));
  expect(alike).toBeLessThan(1 - 1e-7);
  expect(alike).toBeGreaterThan(least);
});

/** Pearson's, of two lists of one length. */
function correlation(a: ArrayLike<number>, b: ArrayLike<number>): number {
  const centred = (values: ArrayLike<number>) => {
    const mean = Array.from(values).reduce((sum, value) => sum + value) / values.length;
    return Array.from(values, (value) => value - mean);
  };
  const product = (x: number[], y: number[]) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  const [x, y] = [centred(a), centred(b)];
  return product(x, y) / Math.sqrt(product(x, x) * product(y, y));
}

/** A value that describes the model, with its type; nothing for lists. */
function typedValue(key: string, value: GgufValue): [string, TypedValue][] {
  if (typeof value === 'string') return [[key, [8, value]]];
  if (typeof value === 'number') return [[key, [Number.isInteger(value) ? 4 : 6, value]]];
  return [];
}

it('refuses no tokens and ids outside of the vocabulary, and the sequence has not moved', () => {
  const model = load('mamba2-101');
  const state = model.createState();
  for (const tokens of [[], [5, 320], [-1], [1.5]]) expect(() => model.forward(tokens, state)).toThrow(ModelError);
  expect(state.numTokens).toBe(0);
  expect(model.forward([5], state)).toEqual(model.forward([5], model.createState()));
});
