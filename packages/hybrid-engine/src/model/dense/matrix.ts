import { type Binding, requireBindingWords } from '@bufferwise/gpu-kernels';
import { dequantise } from '../../gguf/dequantise.ts';
import type { WeightTensor } from '../weight-tensor.ts';
import { refusal } from './operands.ts';

/** How the columns of a matrix stand: in order, or four of the gate, then the same four of up, and so on. */
export type ColumnOrder = 'plain' | 'gate-up';

/** The shape in which the dense kernels read a matrix. */
export interface MatrixLayout {
  /** f16: two values in each 32-bit word, the first in the lower half. */
  readonly format: 'f16' | 'f32';
  /** Inputs, a multiple of 4: rows of the matrix as it lies on the device. */
  readonly inSize: number;
  /** Outputs; for `gate-up` those of both, a multiple of 8. Rows are filled with zeros up to a multiple of 4. */
  readonly numColumns: number;
  readonly order: ColumnOrder;
}

/** A matrix of weights on the device: `[inSize, numColumns]`, each row of quads of columns. */
export interface GpuMatrix extends MatrixLayout {
  readonly buffer: Binding;
}

/** A matrix ready for upload. */
export interface PackedMatrix extends MatrixLayout {
  readonly data: Uint16Array<ArrayBuffer> | Float32Array<ArrayBuffer>;
}

/** Quads of columns in one row of a matrix. */
export function columnQuads(numColumns: number): number {
  return Math.ceil(numColumns / 4);
}

/**
 * Turns weights as files hold them, `[outSize, inSize]`, into columns as the kernels read them. F16 weights keep their 16 bits;
 * all others become f32.
 *
 * @param parts matrices of one input whose outputs come to lie side by side, e.g. queries, keys and values
 * @param order `gate-up`: exactly two parts of one shape, with an output size that is a multiple of 4
 */
export function packMatrix(parts: readonly WeightTensor[], order: ColumnOrder = 'plain'): PackedMatrix {
  const inSize = parts[0].shape[1];
  const numColumns = parts.reduce((sum, part) => sum + part.shape[0], 0);
  const rowLength = columnQuads(numColumns) * 4;
  const format = parts.every(({ type }) => type === 'F16') ? 'f16' : 'f32';
  const data = format === 'f16' ? new Uint16Array(inSize * rowLength) : new Float32Array(inSize * rowLength);
  let firstColumn = 0;
  parts.forEach((part, partIndex) => {
    const values = format === 'f16' ? float16Bits(part) : dequantise(part);
    const [outSize] = part.shape;
    for (let o = 0; o < outSize; o++) {
      const column = columnOf(order, o, firstColumn, partIndex);
      for (let i = 0; i < inSize; i++) data[i * rowLength + column] = values[o * inSize + i];
    }
    firstColumn += outSize;
  });
  return { format, inSize, numColumns, order, data };
}

/** Biases of the same parts in the same order, filled with zeros up to a multiple of 4. */
export function packBias(parts: readonly WeightTensor[], order: ColumnOrder = 'plain'): Float32Array<ArrayBuffer> {
  const numColumns = parts.reduce((sum, part) => sum + part.numElements, 0);
  const data = new Float32Array(columnQuads(numColumns) * 4);
  let firstColumn = 0;
  parts.forEach((part, partIndex) => {
    dequantise(part).forEach((value, o) => {
      data[columnOf(order, o, firstColumn, partIndex)] = value;
    });
    firstColumn += part.numElements;
  });
  return data;
}

function columnOf(order: ColumnOrder, output: number, firstColumn: number, partIndex: number): number {
  return order === 'plain' ? firstColumn + output : 8 * Math.floor(output / 4) + 4 * partIndex + (output % 4);
}

/** @throws {KernelError} `kernel-dispatch` when the layout is not one of `packMatrix`, or fewer words are bound than it has */
export function requireMatrix(label: string, name: string, matrix: GpuMatrix): void {
  const { buffer, format, inSize, numColumns, order } = matrix;
  if (!Number.isInteger(inSize) || inSize <= 0 || inSize % 4 !== 0) {
    throw refusal(label, `${name}.inSize is ${inSize}, not a positive multiple of 4.`);
  }
  const multiple = order === 'plain' ? 1 : 8;
  if (!Number.isInteger(numColumns) || numColumns <= 0 || numColumns % multiple !== 0) {
    throw refusal(label, `${name}.numColumns is ${numColumns}, not a positive multiple of ${multiple}.`);
  }
  requireBindingWords(label, name, buffer, inSize * columnQuads(numColumns) * (format === 'f16' ? 2 : 4));
}

function float16Bits({ bytes, numElements }: WeightTensor): Uint16Array {
  const bits = new Uint16Array(numElements);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let i = 0; i < numElements; i++) bits[i] = view.getUint16(i * 2, true);
  return bits;
}
