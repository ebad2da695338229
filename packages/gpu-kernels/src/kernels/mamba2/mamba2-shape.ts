import { requireConvWidth } from '../recurrent/causal-conv.ts';
import { requireStateShape, type StateShape } from '../recurrent/state-shape.ts';

/** Sizes of a Mamba-2 layer. */
export interface Mamba2Shape extends StateShape {
  /** Tokens that one output of the convolution sees, the current one included: 2, 3 or 4. */
  convWidth: number;
}

/** Where the parts of a Mamba-2 layer lie, in 32-bit words. Made by `mamba2Layout`. */
export interface Mamba2Layout {
  /** Values of x, y and z of one token: `[numHeads, headDim]`. */
  innerSize: number;
  /** Channels of the convolution, one row `[x: innerSize | B: numGroups * stateSize | C: numGroups * stateSize]`. */
  numChannels: number;
  /** One page of the convolution tail, `[convWidth - 1, numChannels] f32`. */
  tailWords: number;
  /** One page of recurrent state, `[numHeads, headDim, stateSize] f32`. */
  stateWords: number;
  /** One row of the input projection, `[z: innerSize | xBC: numChannels | dt: numHeads]`. */
  projection: { rowWords: number; z: number; xBC: number; dt: number };
}

/**
 * Sizes and places that follow from a shape.
 * @throws {KernelError} `kernel-dispatch` when the shape is not one that the kernels serve
 */
export function mamba2Layout(shape: Mamba2Shape): Mamba2Layout {
  requireStateShape('mamba2', shape);
  requireConvWidth('mamba2', shape.convWidth);
  const innerSize = shape.numHeads * shape.headDim;
  const numChannels = innerSize + 2 * shape.numGroups * shape.stateSize;
  return {
    innerSize,
    numChannels,
    tailWords: (shape.convWidth - 1) * numChannels,
    stateWords: innerSize * shape.stateSize,
    projection: { rowWords: innerSize + numChannels + shape.numHeads, z: 0, xBC: innerSize, dt: innerSize + numChannels },
  };
}
