import type { Tensor, TensorConstructor } from 'onnxruntime-common';
import { OnnxDecoderError } from '../errors.ts';
import type { KvTensor } from '../model/decoder-model.ts';

/** What is needed of an ONNX Runtime module: `onnxruntime-node`, `onnxruntime-web`, or an object with their `Tensor`. */
export interface OrtModule {
  readonly Tensor: TensorConstructor;
}

/** A tensor of whole numbers. */
export function int64Tensor({ Tensor }: OrtModule, values: ArrayLike<number>, dims: readonly number[]): Tensor {
  return new Tensor(
    'int64',
    BigInt64Array.from({ length: values.length }, (_, i) => BigInt(values[i])),
    dims,
  );
}

/** Keys or values of `length` tokens, over the given rows. `rows` belongs to the tensor from then on. */
export function pastTensor(
  { Tensor }: OrtModule,
  { type, numKvHeads, headDim }: KvTensor,
  rows: Uint8Array,
  length: number,
): Tensor {
  const dims = [1, numKvHeads, length, headDim];
  if (type === 'float32') return new Tensor(type, new Float32Array(rows.buffer, rows.byteOffset, rows.byteLength / 4), dims);
  return new Tensor(type, new Uint16Array(rows.buffer, rows.byteOffset, rows.byteLength / 2), dims);
}

/**
 * The bytes of a tensor, wherever it is. A view where it is in this process: valid until the tensor is disposed of.
 *
 * @throws {OnnxDecoderError} `onnx-run` when they do not come from where they are
 */
export async function tensorBytes(tensor: Tensor): Promise<Uint8Array> {
  try {
    const isHere = tensor.location === 'cpu' || tensor.location === 'cpu-pinned';
    const data = (isHere ? tensor.data : await tensor.getData()) as Float32Array | Uint16Array;
    return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  } catch (cause) {
    throw new OnnxDecoderError('onnx-run', `a tensor in ${tensor.location} could not be read; see cause`, { cause });
  }
}
