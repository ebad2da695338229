import { KernelError } from '../../errors/kernel-error.ts';

/** Sizes of the recurrence of a Mamba-2 layer. */
export interface SsmShape {
  numHeads: number;
  /** Rows of a head's state: values of x and y of one token and head. */
  headDim: number;
  /** Columns of a head's state: values of B and of C of one token and group. At most 1024. */
  stateSize: number;
  /** Groups of B and C, a divisor of `numHeads`; head h reads group `floor(h / (numHeads / numGroups))`. */
  numGroups: number;
}

/** Sizes of a Mamba-2 layer. */
export interface Mamba2Shape extends SsmShape {
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

const MAX_STATE_SIZE = 1024;
const MIN_CONV_WIDTH = 2;
const MAX_CONV_WIDTH = 4;

/**
 * Sizes and places that follow from a shape.
 * @throws {KernelError} `kernel-dispatch` when the shape is not one that the kernels serve
 */
export function mamba2Layout(shape: Mamba2Shape): Mamba2Layout {
  requireSsmShape('mamba2', shape);
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

export function requireSsmShape(label: string, shape: SsmShape): void {
  for (const name of ['numHeads', 'headDim', 'stateSize', 'numGroups'] as const) requirePositive(label, name, shape[name]);
  if (shape.numHeads % shape.numGroups !== 0) {
    throw new KernelError(
      'kernel-dispatch',
      label,
      `numGroups ${shape.numGroups} does not divide numHeads ${shape.numHeads}. Every group of B and C serves equally many heads.`,
    );
  }
  if (shape.stateSize > MAX_STATE_SIZE) {
    throw new KernelError(
      'kernel-dispatch',
      label,
      `stateSize ${shape.stateSize} is above ${MAX_STATE_SIZE}, the most a workgroup holds.`,
    );
  }
}

export function requireConvWidth(label: string, width: number): void {
  if (Number.isInteger(width) && width >= MIN_CONV_WIDTH && width <= MAX_CONV_WIDTH) return;
  throw new KernelError('kernel-dispatch', label, `convolution width ${width} is not ${MIN_CONV_WIDTH} to ${MAX_CONV_WIDTH}.`);
}

export function requirePositive(label: string, name: string, value: number): void {
  if (Number.isInteger(value) && value > 0) return;
  throw new KernelError('kernel-dispatch', label, `${name} is ${value}, not a positive integer.`);
}
