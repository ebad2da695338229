import { ModelError } from '../model/model-error.ts';
import { dot, multiply } from '../model/vector-math.ts';

/** The weights of a model as numbers, and the two things that are done with them. */
export class ReferenceWeights {
  readonly #values: ReadonlyMap<string, Float32Array>;
  readonly #normEps: number;

  /** @param values by name, row-major */
  constructor(values: ReadonlyMap<string, Float32Array>, normEps: number) {
    this.#values = values;
    this.#normEps = normEps;
  }

  /** @throws {ModelError} `model-weights` when there is none of that name */
  get(name: string): Float32Array {
    const values = this.#values.get(name);
    if (values === undefined) {
      throw new ModelError('model-weights', `Tensor "${name}" is missing. Check the weights first.`, { tensor: name });
    }
    return values;
  }

  /** `name.weight x`, plus `name.bias` where `hasBias`. */
  project(name: string, x: Float32Array, hasBias = false): Float32Array {
    const weight = this.get(`${name}.weight`);
    const out = new Float32Array(weight.length / x.length);
    multiply(weight, x, out, x.length);
    if (!hasBias) return out;
    const bias = this.get(`${name}.bias`);
    return out.map((value, i) => value + bias[i]);
  }

  /**
   * RMS norm of each run of `size` values: over the square root of their mean square plus epsilon, times a weight. Runs take
   * their weights one behind the other, and from the start again where there are fewer.
   */
  norm(name: string, x: Float32Array, size = x.length): Float32Array {
    const weight = this.get(`${name}.weight`);
    const out = new Float32Array(x.length);
    for (let begin = 0; begin < x.length; begin += size) {
      const scale = 1 / Math.sqrt(dot(x, begin, x, begin, size) / size + this.#normEps);
      for (let i = begin; i < begin + size; i++) out[i] = x[i] * scale * weight[i % weight.length];
    }
    return out;
  }
}
