import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chooseGreedy } from './greedy.ts';
import { Sampler, type SamplingOptions } from './sampler.ts';
import { SamplingError } from './sampling-error.ts';

const LOGITS = Float32Array.of(0.5, 2, 1, 1, -1, -Infinity);

function frequencies(options: SamplingOptions, logits = LOGITS, draws = 20_000): number[] {
  const sampler = new Sampler(options);
  const counts = new Array<number>(logits.length).fill(0);
  for (let i = 0; i < draws; i++) counts[sampler.choose(logits).token]++;
  return counts.map((count) => count / draws);
}

function softmax(logits: ArrayLike<number>, temperature: number, kept: (token: number) => boolean): number[] {
  const weights = Array.from(logits, (logit, token) => (kept(token) ? Math.exp(logit / temperature) : 0));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}

describe('a sampler', () => {
  it('is greedy unless told otherwise', () => {
    expect(new Sampler().choose(LOGITS)).toEqual(chooseGreedy(LOGITS));
    expect(new Sampler({ temperature: 0, topK: 3, topP: 0.2 }).choose(LOGITS)).toEqual(chooseGreedy(LOGITS));
  });

  it.each<[string, SamplingOptions, (token: number) => boolean]>([
    ['the softmax at temperature 1', { temperature: 1 }, () => true],
    ['the softmax at temperature 2', { temperature: 2 }, () => true],
    ['the two best, the lower id of equals', { temperature: 1, topK: 2 }, (token) => token === 1 || token === 2],
    // Shares at temperature 1: 0.49, 0.18, 0.18, 0.11, 0.02.
    ['the fewest that reach topP', { temperature: 1, topP: 0.8 }, (token) => token >= 1 && token <= 3],
    ['the best of the topK by topP', { temperature: 1, topK: 3, topP: 0.7 }, (token) => token === 1 || token === 2],
  ])('draws from %s', (_, options, kept) => {
    const expected = softmax(LOGITS, options.temperature ?? 1, kept);
    frequencies({ ...options, seed: 5 }).forEach((frequency, token) => {
      expect(Math.abs(frequency - expected[token])).toBeLessThan(0.015);
      if (expected[token] === 0) expect(frequency).toBe(0);
    });
  });

  it('always draws the best token when topP is tiny or topK is 1', () => {
    expect(frequencies({ temperature: 1, topP: 1e-9 }, LOGITS, 100)[1]).toBe(1);
    expect(frequencies({ temperature: 9, topK: 1 }, LOGITS, 100)[1]).toBe(1);
  });

  it('gives the same tokens for the same seed', () => {
    const answer = (seed: number) => {
      const sampler = new Sampler({ temperature: 1, seed });
      return Array.from({ length: 50 }, () => sampler.choose(LOGITS).token);
    };
    expect(answer(1)).toEqual(answer(1));
    expect(answer(1)).not.toEqual(answer(2));
  });

  it('reports the probability that the model gave, whatever the filters', () => {
    const plain = softmax(LOGITS, 1, () => true);
    const sampler = new Sampler({ temperature: 3, topK: 2 });
    for (let i = 0; i < 20; i++) {
      const { token, logProbability } = sampler.choose(LOGITS);
      expect(logProbability).toBeCloseTo(Math.log(plain[token]), 6);
    }
  });

  it('stays inside of its filters and leaves the logits alone, for any logits', () => {
    fc.assert(
      fc.property(
        fc.float32Array({ minLength: 1, maxLength: 30, noNaN: true, min: -100, max: 100 }),
        fc.integer({ min: 1, max: 40 }),
        fc.double({ min: 1e-6, max: 1, noNaN: true }),
        fc.double({ min: 1e-3, max: 10, noNaN: true }),
        (logits, topK, topP, temperature) => {
          const before = logits.slice();
          const { token } = new Sampler({ temperature, topK, topP, seed: 3 }).choose(logits);
          const numBetter = logits.filter((logit, i) => logit > logits[token] || (logit === logits[token] && i < token)).length;
          expect(numBetter).toBeLessThan(topK);
          expect(logits).toEqual(before);
        },
      ),
    );
  });

  it.each<[string, SamplingOptions]>([
    ['temperature', { temperature: -1 }],
    ['temperature', { temperature: Number.NaN }],
    ['temperature', { temperature: Infinity }],
    ['topK', { topK: 0 }],
    ['topK', { topK: 1.5 }],
    ['topP', { topP: 0 }],
    ['topP', { topP: 1.1 }],
    ['topP', { topP: Number.NaN }],
    ['seed', { seed: -1 }],
    ['seed', { seed: 0.5 }],
  ])('refuses an impossible %s: %j', (option, options) => {
    expect(() => new Sampler(options)).toThrow(expect.objectContaining({ code: 'sampling-options', option }));
  });

  it('refuses logits that are not numbers', () => {
    expect(() => new Sampler({ temperature: 1 }).choose(Float32Array.of(1, Number.NaN))).toThrow(SamplingError);
  });
});
