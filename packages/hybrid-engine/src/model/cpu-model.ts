import { KeyValueHistory } from './key-value-history.ts';
import { type HybridModelConfig, layerKind, ssmConvChannels, ssmProjectionSize } from './model-config.ts';
import { ModelError } from './model-error.ts';
import { type Tensor, toFloat32 } from './safetensors.ts';
import { dot, multiply, silu, softplus } from './vector-math.ts';

/** What the last token of a step came out as. */
export interface CpuModelOutput {
  /** `[vocabSize] f32`. */
  logits: Float32Array;
  /** The residual stream after each layer, `[dModel] f32` each. */
  layerOutputs: Float32Array[];
}

/**
 * The whole model in plain TypeScript: the answer that every kernel and every cache is measured by.
 *
 * One token at a time, with sums in double precision and activations in f32. Keeps keys, values and states in a
 * `CpuModelState` of the caller and nothing between calls.
 */
export class CpuModel {
  readonly config: HybridModelConfig;
  readonly #weights: ReadonlyMap<string, Float32Array>;

  /** @param tensors those of `config`, as `checkWeights` makes sure */
  constructor(config: HybridModelConfig, tensors: ReadonlyMap<string, Tensor>) {
    this.config = config;
    this.#weights = new Map([...tensors].map(([name, tensor]) => [name, toFloat32(tensor)]));
  }

  /** The state of a sequence without tokens. */
  createState(): CpuModelState {
    return new CpuModelState(this.config);
  }

  /**
   * Appends tokens to a sequence.
   *
   * @param tokens at least one id below `vocabSize`
   * @param state moved on by `tokens.length`
   * @returns the output of the last token; the arrays are the caller's
   * @throws {ModelError} `model-input` for no tokens or an id outside of the vocabulary; the state has not moved
   */
  forward(tokens: ArrayLike<number>, state: CpuModelState): CpuModelOutput {
    const { vocabSize, dModel } = this.config;
    if (tokens.length === 0) throw new ModelError('model-input', 'A step needs at least one token.');
    for (let i = 0; i < tokens.length; i++) {
      if (!Number.isInteger(tokens[i]) || tokens[i] < 0 || tokens[i] >= vocabSize) {
        throw new ModelError('model-input', `Token ${i} is ${tokens[i]}; the model has the ids 0 to ${vocabSize - 1}.`);
      }
    }
    let layerOutputs: Float32Array[] = [];
    for (let i = 0; i < tokens.length; i++) layerOutputs = this.#step(tokens[i], state);
    const normed = this.#norm('norm.weight', layerOutputs[layerOutputs.length - 1]);
    const logits = new Float32Array(vocabSize);
    multiply(this.#weight('embed.weight'), normed, logits, dModel);
    return { logits, layerOutputs };
  }

  #step(token: number, state: CpuModelState): Float32Array[] {
    const { dModel, mlpHidden, layerPattern } = this.config;
    let x: Float32Array = this.#weight('embed.weight').slice(token * dModel, (token + 1) * dModel);
    const outputs: Float32Array[] = [];
    for (let layer = 0; layer < layerPattern.length; layer++) {
      const prefix = `layers.${layer}`;
      const normed = this.#norm(`${prefix}.norm1.weight`, x);
      const mixed =
        layerKind(this.config, layer) === 'M' ? this.#mamba(layer, normed, state) : this.#attention(layer, normed, state);
      x = sum(x, mixed);
      const mlpIn = this.#norm(`${prefix}.norm2.weight`, x);
      const gate = this.#project(`${prefix}.mlp.gate.weight`, mlpIn, mlpHidden);
      const up = this.#project(`${prefix}.mlp.up.weight`, mlpIn, mlpHidden);
      for (let i = 0; i < mlpHidden; i++) gate[i] = silu(gate[i]) * up[i];
      x = sum(x, this.#project(`${prefix}.mlp.down.weight`, gate, dModel));
      outputs.push(x);
    }
    state.numTokens++;
    return outputs;
  }

  #attention(layer: number, x: Float32Array, state: CpuModelState): Float32Array {
    const { config } = this;
    const { numHeads, numKvHeads, headDim } = config;
    const prefix = `layers.${layer}.mixer`;
    const position = state.numTokens;
    const q = this.#project(`${prefix}.q.weight`, x, numHeads * headDim);
    const k = this.#project(`${prefix}.k.weight`, x, numKvHeads * headDim);
    rotate(q, position, config);
    rotate(k, position, config);
    const cache = state.layers[layer] as KeyValueHistory;
    cache.append(k, this.#project(`${prefix}.v.weight`, x, numKvHeads * headDim));

    const windowed = layerKind(config, layer) === 'S';
    const out = new Float32Array(numHeads * headDim);
    const scores = new Float64Array(position + 1);
    for (let head = 0; head < numHeads; head++) {
      const kvOffset = Math.floor((head * numKvHeads) / numHeads) * headDim;
      let best = Number.NEGATIVE_INFINITY;
      for (let j = 0; j <= position; j++) {
        const seen = !windowed || position - j < config.slidingWindow || j < config.numSinkTokens;
        scores[j] = seen
          ? dot(q, head * headDim, cache.keys, j * cache.width + kvOffset, headDim) / Math.sqrt(headDim)
          : -Infinity;
        best = Math.max(best, scores[j]);
      }
      let total = 0;
      for (let j = 0; j <= position; j++) {
        scores[j] = Math.exp(scores[j] - best);
        total += scores[j];
      }
      for (let d = 0; d < headDim; d++) {
        let weighted = 0;
        for (let j = 0; j <= position; j++) weighted += scores[j] * cache.values[j * cache.width + kvOffset + d];
        out[head * headDim + d] = weighted / total;
      }
    }
    return this.#project(`${prefix}.o.weight`, out, config.dModel);
  }

  #mamba(layer: number, x: Float32Array, state: CpuModelState): Float32Array {
    const { config } = this;
    const { ssmInner, ssmState, ssmNumHeads, ssmHeadDim } = config;
    const prefix = `layers.${layer}.mixer`;
    const channels = ssmConvChannels(config);
    const projected = this.#project(`${prefix}.in_proj.weight`, x, ssmProjectionSize(config));
    const z = projected.subarray(0, ssmInner);
    const { ssm, conv } = state.layers[layer] as MambaState;
    const mixed = this.#convolve(prefix, projected.subarray(ssmInner, ssmInner + channels), conv);
    const b = mixed.subarray(ssmInner, ssmInner + ssmState);
    const c = mixed.subarray(ssmInner + ssmState);
    const dtBias = this.#weight(`${prefix}.dt_bias`);
    const aLog = this.#weight(`${prefix}.a_log`);
    const dSkip = this.#weight(`${prefix}.d_skip`);

    const y = new Float32Array(ssmInner);
    for (let head = 0; head < ssmNumHeads; head++) {
      const dt = softplus(projected[ssmInner + channels + head] + dtBias[head]);
      const decay = Math.exp(-Math.exp(aLog[head]) * dt);
      for (let i = head * ssmHeadDim; i < (head + 1) * ssmHeadDim; i++) {
        let read = 0;
        for (let n = 0; n < ssmState; n++) {
          const h = ssm[i * ssmState + n] * decay + dt * mixed[i] * b[n];
          ssm[i * ssmState + n] = h;
          read += h * c[n];
        }
        y[i] = (read + dSkip[head] * mixed[i]) * silu(z[i]);
      }
    }
    return this.#project(`${prefix}.out_proj.weight`, this.#norm(`${prefix}.norm.weight`, y), config.dModel);
  }

  /** Convolves the newest row with the remembered ones, applies SiLU, and remembers the row. */
  #convolve(prefix: string, row: Float32Array, remembered: Float32Array): Float32Array {
    const channels = row.length;
    const taps = this.config.ssmConvWidth;
    const weight = this.#weight(`${prefix}.conv_weight`);
    const bias = this.#weight(`${prefix}.conv_bias`);
    const out = new Float32Array(channels);
    for (let i = 0; i < channels; i++) {
      let total = bias[i] + weight[i * taps + taps - 1] * row[i];
      for (let tap = 0; tap < taps - 1; tap++) total += weight[i * taps + tap] * remembered[tap * channels + i];
      out[i] = silu(total);
    }
    remembered.copyWithin(0, channels);
    remembered.set(row, (taps - 2) * channels);
    return out;
  }

  #norm(name: string, x: Float32Array): Float32Array {
    const weight = this.#weight(name);
    const scale = 1 / Math.sqrt(dot(x, 0, x, 0, x.length) / x.length + this.config.normEps);
    return x.map((value, i) => value * scale * weight[i]);
  }

  #project(name: string, x: Float32Array, outSize: number): Float32Array {
    const out = new Float32Array(outSize);
    multiply(this.#weight(name), x, out, x.length);
    return out;
  }

  #weight(name: string): Float32Array {
    const weight = this.#weights.get(name);
    if (weight === undefined)
      throw new ModelError('model-weights', `Tensor "${name}" is missing. Check the weights first.`, { tensor: name });
    return weight;
  }
}

/** What one sequence has left in the model: keys and values of every token, or the recurrent state after the last one. */
export class CpuModelState {
  /** Tokens taken in so far: the position of the next one. */
  numTokens = 0;
  readonly layers: readonly (KeyValueHistory | MambaState)[];

  constructor(config: HybridModelConfig) {
    this.layers = Array.from(config.layerPattern, (_, layer) =>
      layerKind(config, layer) === 'M' ? new MambaState(config) : new KeyValueHistory(config.numKvHeads * config.headDim),
    );
  }
}

/** Recurrent state `[ssmNumHeads, ssmHeadDim, ssmState]` and the rows before the convolution, `[ssmConvWidth - 1, channels]`. */
class MambaState {
  readonly ssm: Float32Array;
  readonly conv: Float32Array;

  constructor(config: HybridModelConfig) {
    this.ssm = new Float32Array(config.ssmInner * config.ssmState);
    this.conv = new Float32Array((config.ssmConvWidth - 1) * ssmConvChannels(config));
  }
}

function sum(a: Float32Array, b: Float32Array): Float32Array {
  return a.map((value, i) => value + b[i]);
}

/** Turns the pairs (i, i + headDim / 2) of every head by position * theta ** (-2i / headDim), in place. */
function rotate(heads: Float32Array, position: number, config: HybridModelConfig): void {
  const { headDim, ropeTheta } = config;
  const half = headDim / 2;
  for (let i = 0; i < half; i++) {
    const angle = position * ropeTheta ** (-i / half);
    const cos = Math.cos(angle);
    const sin = Math.sin(angle);
    for (let begin = i; begin < heads.length; begin += headDim) {
      const a = heads[begin];
      const b = heads[begin + half];
      heads[begin] = a * cos - b * sin;
      heads[begin + half] = b * cos + a * sin;
    }
  }
}
