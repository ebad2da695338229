import { decodeHalf } from '@bufferwise/adapter-kit';
import { decodeBfloat16 } from '../model/bfloat16.ts';
import type { WeightTensor } from '../model/weight-tensor.ts';
import { BLOCK_LAYOUTS, QUANTISED_BLOCK_ELEMENTS } from './tensor-type.ts';

/**
 * The elements of a tensor as numbers, row-major, in an array of its own: 4 bytes an element. F32, F16 and BF16 come out
 * exactly; a quantised element is its code times the scale of its block, rounded to binary32.
 */
export function dequantise(tensor: Pick<WeightTensor, 'type' | 'numElements' | 'bytes'>): Float32Array<ArrayBuffer> {
  const { type, numElements, bytes } = tensor;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const values = new Float32Array(numElements);
  const layout = BLOCK_LAYOUTS[type];
  const read = READERS[type];
  for (let block = 0; block < numElements / layout.elements; block++) {
    read(view, block * layout.bytes, values, block * layout.elements);
  }
  return values;
}

/** Writes the elements of the block at byte `from` to `values`, from element `to` on. */
type BlockReader = (view: DataView, from: number, values: Float32Array, to: number) => void;

const READERS: Readonly<Record<WeightTensor['type'], BlockReader>> = {
  F32(view, from, values, to) {
    values[to] = view.getFloat32(from, true);
  },
  F16(view, from, values, to) {
    values[to] = decodeHalf(view.getUint16(from, true));
  },
  BF16(view, from, values, to) {
    values[to] = decodeBfloat16(view.getUint16(from, true));
  },
  Q8_0: readQ8,
  Q4_0: readQ4,
};

/**
 * A scale d in binary16 and 32 signed bytes q: element i is d × q[i].
 * @see ggml src/ggml-quants.c, `dequantize_row_q8_0`
 */
function readQ8(view: DataView, from: number, values: Float32Array, to: number): void {
  const scale = decodeHalf(view.getUint16(from, true));
  for (let i = 0; i < QUANTISED_BLOCK_ELEMENTS; i++) values[to + i] = scale * view.getInt8(from + 2 + i);
}

/**
 * A scale d in binary16 and 16 bytes of two codes 0 to 15: element i is d × (low half of byte i - 8), element i + 16 is
 * d × (high half of byte i - 8).
 * @see ggml src/ggml-quants.c, `dequantize_row_q4_0`
 */
function readQ4(view: DataView, from: number, values: Float32Array, to: number): void {
  const scale = decodeHalf(view.getUint16(from, true));
  const half = QUANTISED_BLOCK_ELEMENTS / 2;
  for (let i = 0; i < half; i++) {
    const pair = view.getUint8(from + 2 + i);
    values[to + i] = scale * ((pair & 0xf) - 8);
    values[to + i + half] = scale * ((pair >> 4) - 8);
  }
}
