import fc from 'fast-check';
import { expect, it } from 'vitest';
import { chooseGreedy } from './greedy.ts';
import { SamplingError } from './sampling-error.ts';

it('the most likely token wins, with its log-probability', () => {
  const { token, logProbability } = chooseGreedy(Float32Array.of(0, Math.log(3), 0));
  expect(token).toBe(1);
  expect(logProbability).toBeCloseTo(Math.log(3 / 5), 6);
});

it('of equals the lowest id wins', () => {
  expect(chooseGreedy(Float32Array.of(-1, 2, 2, 2)).token).toBe(1);
  expect(chooseGreedy(new Float32Array(9)).token).toBe(0);
});

it('huge logits and forbidden tokens are no trouble', () => {
  expect(chooseGreedy(Float32Array.of(-Infinity, 3e38, -3e38))).toEqual({ token: 1, logProbability: 0 });
});

it('what is chosen is never beaten, and probabilities are what the softmax gives', () => {
  fc.assert(
    fc.property(fc.float32Array({ minLength: 1, maxLength: 50, noNaN: true, min: -50, max: 50 }), (logits) => {
      const { token, logProbability } = chooseGreedy(logits);
      expect(logits.every((logit, i) => logit < logits[token] || (logit === logits[token] && i >= token))).toBe(true);
      const total = logits.reduce((sum, logit) => sum + Math.exp(logit), 0);
      expect(logProbability).toBeCloseTo(logits[token] - Math.log(total), 6);
    }),
  );
});

it.each([
  ['NaN', [1, Number.NaN]],
  ['NaN at the first place', [Number.NaN, 1]],
  ['plus infinity', [1, Infinity]],
  ['nothing but forbidden tokens', [-Infinity, -Infinity]],
  ['nothing', []],
])('logits that hold %s are refused', (_, logits) => {
  expect(() => chooseGreedy(Float32Array.from(logits))).toThrow(SamplingError);
});
