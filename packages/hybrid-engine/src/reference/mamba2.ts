import { convolvedChannels, type Mamba2Description } from '../description/mamba2.ts';
import { silu, softplus } from '../model/vector-math.ts';
import type { ReferenceWeights } from './weights.ts';

/** What a Mamba-2 layer remembers: all zero before the first token. */
export class Mamba2State {
  /** `[numHeads, headDim, stateSize]`. */
  readonly state: Float32Array;
  /** The last rows before the convolution, `[convWidth - 1, channels]`, oldest first. */
  readonly rows: Float32Array;

  constructor(state: Float32Array, rows: Float32Array) {
    this.state = state;
    this.rows = rows;
  }

  static empty(mixer: Mamba2Description): Mamba2State {
    const rows = new Float32Array((mixer.convWidth - 1) * convolvedChannels(mixer));
    return new Mamba2State(new Float32Array(mixer.inner * mixer.stateSize), rows);
  }

  /** One that goes on alone from here. */
  clone(): Mamba2State {
    return new Mamba2State(this.state.slice(), this.rows.slice());
  }
}

/**
 * Mamba-2 on one token.
 *
 * @param prefix of the layer's tensors: `blk.0`
 * @param x `[width]`, normed if the layer norms before
 * @param memory moves on by this token
 * @returns `[width]`
 */
export function mixMamba2(
  mixer: Mamba2Description,
  prefix: string,
  weights: ReferenceWeights,
  x: Float32Array,
  memory: Mamba2State,
): Float32Array {
  const { inner, numHeads, headDim, numGroups, stateSize } = mixer;
  const channels = convolvedChannels(mixer);
  const projected = weights.project(`${prefix}.ssm_in`, x);
  const z = projected.subarray(0, inner);
  const mixed = convolve(mixer, prefix, weights, projected.subarray(inner, inner + channels), memory.rows);
  const steps = projected.subarray(inner + channels);
  const stepBias = weights.get(`${prefix}.ssm_dt.bias`);
  const rates = weights.get(`${prefix}.ssm_a`);
  const skips = weights.get(`${prefix}.ssm_d`);

  const y = new Float32Array(inner);
  for (let head = 0; head < numHeads; head++) {
    const step = softplus(steps[head] + stepBias[head]);
    const decay = Math.exp(step * rates[head]);
    const b = inner + Math.floor((head * numGroups) / numHeads) * stateSize;
    const c = b + numGroups * stateSize;
    for (let i = head * headDim; i < (head + 1) * headDim; i++) {
      let read = 0;
      for (let n = 0; n < stateSize; n++) {
        const s = memory.state[i * stateSize + n] * decay + step * mixed[i] * mixed[b + n];
        memory.state[i * stateSize + n] = s;
        read += s * mixed[c + n];
      }
      y[i] = (read + skips[head] * mixed[i]) * silu(z[i]);
    }
  }
  return weights.project(`${prefix}.ssm_out`, weights.norm(`${prefix}.ssm_norm`, y, inner / numGroups));
}

/** Convolves the newest row with the remembered ones, applies SiLU, and remembers the row. */
function convolve(
  { convWidth }: Mamba2Description,
  prefix: string,
  weights: ReferenceWeights,
  row: Float32Array,
  rows: Float32Array,
): Float32Array {
  const taps = weights.get(`${prefix}.ssm_conv1d.weight`);
  const bias = weights.get(`${prefix}.ssm_conv1d.bias`);
  const channels = row.length;
  const last = convWidth - 1;
  const out = row.map((newest, i) => {
    let total = bias[i] + taps[i * convWidth + last] * newest;
    for (let tap = 0; tap < last; tap++) total += taps[i * convWidth + tap] * rows[tap * channels + i];
    return silu(total);
  });
  rows.copyWithin(0, channels);
  rows.set(row, (last - 1) * channels);
  return out;
}
