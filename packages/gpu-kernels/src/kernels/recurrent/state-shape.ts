import { KernelError } from '../../errors/kernel-error.ts';

/** Sizes of a linear recurrence: every head has a state `[headDim, stateSize]`. */
export interface StateShape {
  numHeads: number;
  /** Rows of a head's state: values that a token brings to a head, and gets back from it. */
  headDim: number;
  /** Columns of a head's state: values of a key and of a query. At most 1024. */
  stateSize: number;
  /** Groups of heads with a key and a query in common, a divisor of `numHeads`; head h is in group `floor(h / (numHeads / numGroups))`. */
  numGroups: number;
}

const MAX_STATE_SIZE = 1024;

/** Rows and columns of the part of a head's state that one invocation keeps in registers, as in state-tile.wgsl. */
const TILE_ROWS = 4;
const TILE_COLUMNS = 16;

/** Groups of 4 rows that the state of a head is divided into, the last one perhaps not full. */
export function rowGroupsOf(headDim: number): number {
  return Math.ceil(headDim / TILE_ROWS);
}

/** Slices of 16 columns that the state of a head is divided into, the last one perhaps not full. */
export function slicesOf(stateSize: number): number {
  return Math.ceil(stateSize / TILE_COLUMNS);
}

/** Numbers of the state of one request. */
export function stateNumbers(shape: StateShape): number {
  return shape.numHeads * shape.headDim * shape.stateSize;
}

export function requireStateShape(label: string, shape: StateShape): void {
  for (const name of ['numHeads', 'headDim', 'stateSize', 'numGroups'] as const) requirePositive(label, name, shape[name]);
  if (shape.numHeads % shape.numGroups !== 0) {
    throw new KernelError(
      'kernel-dispatch',
      label,
      `numGroups ${shape.numGroups} does not divide numHeads ${shape.numHeads}. Every group of keys serves equally many heads.`,
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

export function requirePositive(label: string, name: string, value: number): void {
  if (Number.isInteger(value) && value > 0) return;
  throw new KernelError('kernel-dispatch', label, `${name} is ${value}, not a positive integer.`);
}
