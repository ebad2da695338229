/**
 * A Mamba-2 mixer. Its input projection gives `[z: inner | x: inner | B: numGroups × stateSize | C: the same | dt: numHeads]`;
 * x, B and C go through a causal convolution with a bias, and SiLU. Of each head, with a negative rate a and a skip d,
 * `S = S exp(dt a) + dt x B` and `y = S C + d x`, dt through softplus after its bias. Then y times SiLU of z, RMS norm over
 * each group, and the output projection.
 */
export interface Mamba2Description {
  readonly kind: 'mamba2';
  /** `numHeads × headDim`. */
  readonly inner: number;
  readonly numHeads: number;
  readonly headDim: number;
  /** Groups of heads that share B and C; divides `numHeads`. */
  readonly numGroups: number;
  readonly stateSize: number;
  /** Taps of the convolution, the newest token's included. */
  readonly convWidth: number;
}

/** Channels of the convolution: x, B and C. */
export function convolvedChannels({ inner, numGroups, stateSize }: Mamba2Description): number {
  return inner + 2 * numGroups * stateSize;
}

/** Rows of the input projection. */
export function projectedSize(mixer: Mamba2Description): number {
  return mixer.inner + convolvedChannels(mixer) + mixer.numHeads;
}
