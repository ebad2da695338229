import { type Binding, KernelError, requireBindingWords } from '@bufferwise/gpu-kernels';

/** Rows of f32 values, one for each token, anywhere in a buffer: row t begins at word `offsetWords + t * strideWords`. */
export interface Rows {
  buffer: Binding;
  /** Words from the start of the binding to the first row. Default 0. */
  offsetWords?: number;
  /** Words from one row to the next, at least the length of a row. Default: rows lie side by side. */
  strideWords?: number;
}

/** Where rows begin and how far apart they are, with the defaults filled in. */
export interface PlacedRows {
  offset: number;
  stride: number;
}

/**
 * The place of rows, checked against what is bound.
 *
 * @param numRows  rows in use
 * @param rowWords values of a row
 * @param multiple what offset and stride must be a multiple of, words
 * @throws {KernelError} `kernel-dispatch`
 */
export function placeRows(
  label: string,
  name: string,
  rows: Rows,
  { numRows, rowWords, multiple = 1 }: { numRows: number; rowWords: number; multiple?: number },
): PlacedRows {
  const { offsetWords: offset = 0, strideWords: stride = rowWords } = rows;
  for (const [field, value] of [
    ['offsetWords', offset],
    ['strideWords', stride],
  ] as const) {
    if (!Number.isInteger(value) || value < 0 || value % multiple !== 0) {
      throw refusal(label, `${name}.${field} is ${value}, not a multiple of ${multiple} words.`);
    }
  }
  if (stride < rowWords) throw refusal(label, `${name}.strideWords is ${stride}, but a row has ${rowWords} words.`);
  requireBindingWords(label, name, rows.buffer, numRows === 0 ? 0 : offset + (numRows - 1) * stride + rowWords);
  return { offset, stride };
}

/** @throws {KernelError} `kernel-dispatch` unless `value` is an integer >= 0 */
export function requireCount(label: string, name: string, value: number): void {
  if (!Number.isInteger(value) || value < 0) throw refusal(label, `${name} is ${value}, not an integer >= 0.`);
}

export function refusal(label: string, message: string): KernelError {
  return new KernelError('kernel-dispatch', label, message);
}
