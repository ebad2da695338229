import { BufferwiseError } from '@bufferwise/core-policy';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dequantise } from '../gguf/dequantise.ts';
import { ModelError } from './model-error.ts';
import { readSafetensors } from './safetensors.ts';
import { present } from './testing/present.ts';
import { whalerFiles } from './testing/whaler-files.ts';
import { encodeUtf8 } from './utf8.ts';

/** A file of a header, as text or as a value, and data. */
function file(header: unknown, data: ArrayLike<number> = []): Uint8Array {
  const text = encodeUtf8(typeof header === 'string' ? header : JSON.stringify(header));
  const bytes = new Uint8Array(8 + text.length + data.length);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(text.length), true);
  bytes.set(text, 8);
  bytes.set(data, 8 + text.length);
  return bytes;
}

function faultOf(bytes: Uint8Array): ModelError {
  try {
    readSafetensors(bytes);
  } catch (error) {
    expect(BufferwiseError.isInstance(error)).toBe(true);
    return error as ModelError;
  }
  throw new Error('the file was accepted');
}

const TWO = {
  a: { dtype: 'F16', shape: [2], data_offsets: [0, 4] },
  b: { dtype: 'F32', shape: [1, 1], data_offsets: [4, 8] },
};
const TWO_DATA = [0x00, 0x3c, 0x00, 0xc0, 0, 0, 0x20, 0x41];

describe('a sound file', () => {
  it('gives its tensors in the order of their place, with metadata apart', () => {
    const { tensors, metadata } = readSafetensors(file({ b: TWO.b, __metadata__: { format: 'pt' }, a: TWO.a }, TWO_DATA));
    expect([...tensors.keys()]).toEqual(['a', 'b']);
    expect(tensors.get('b')).toMatchObject({ type: 'F32', shape: [1, 1], numElements: 1 });
    expect([...metadata]).toEqual([['format', 'pt']]);
  });

  it('converts every dtype, at any alignment of the bytes', () => {
    const header = { ...TWO, c: { dtype: 'BF16', shape: [1], data_offsets: [8, 10] } };
    for (let shift = 0; shift < 4; shift++) {
      const sound = file(`${JSON.stringify(header)}${' '.repeat(shift)}`, [...TWO_DATA, 0x80, 0x3f]);
      const moved = new Uint8Array(sound.length + shift).subarray(shift);
      moved.set(sound);
      const { tensors } = readSafetensors(moved);
      expect([...tensors.values()].map((tensor) => [...dequantise(tensor)])).toEqual([[1, -2], [10], [1]]);
    }
  });

  it('may hold scalars, tensors without elements, and nothing at all', () => {
    const empty = { dtype: 'F32', shape: [0, 7], data_offsets: [0, 0] };
    const scalar = { dtype: 'F32', shape: [], data_offsets: [0, 4] };
    expect(readSafetensors(file({ scalar, empty }, [0, 0, 0, 0])).tensors.get('scalar')?.numElements).toBe(1);
    expect(readSafetensors(file({})).tensors.size).toBe(0);
  });

  it('copies nothing', () => {
    const bytes = file(TWO, TWO_DATA);
    expect(readSafetensors(bytes).tensors.get('a')?.bytes.buffer).toBe(bytes.buffer);
  });

  it('is what the demo model ships', () => {
    const { tensors, metadata } = readSafetensors(whalerFiles().weights);
    expect(tensors.size).toBe(68);
    expect(metadata.get('format')).toBe('pt');
    expect(dequantise(present(tensors.get('layers.0.norm1.weight'))).every(Number.isFinite)).toBe(true);
  });
});

describe('a broken file is refused', () => {
  const withA = (changes: object) => ({ ...TWO, a: { ...TWO.a, ...changes } });

  it.each<[string, Uint8Array, string, string | undefined]>([
    ['shorter than its prefix', new Uint8Array(7), 'safetensors-truncated', undefined],
    ['whose header ends behind the file', file(TWO, TWO_DATA).subarray(0, 40), 'safetensors-truncated', undefined],
    ['whose data ends too early', file(TWO, TWO_DATA.slice(0, 7)), 'safetensors-truncated', 'b'],
    [
      'with a header beyond the limit',
      Uint8Array.of(255, 255, 255, 255, 255, 255, 255, 255, 123, 125),
      'safetensors-header',
      undefined,
    ],
    ['with a header that is not JSON', file('{"a":'), 'safetensors-header', undefined],
    ['with a header nested without end', file('['.repeat(200_000)), 'safetensors-header', undefined],
    ['with a header that is a list', file([]), 'safetensors-header', undefined],
    ['with metadata that is not text', file({ __metadata__: { a: 1 } }), 'safetensors-header', undefined],
    ['with an entry that is null', file({ a: null }), 'safetensors-tensor', 'a'],
    ['with a dtype that it does not know', file(withA({ dtype: 'F64' }), TWO_DATA), 'safetensors-tensor', 'a'],
    ['with a dtype from the prototype', file(withA({ dtype: 'toString' }), TWO_DATA), 'safetensors-tensor', 'a'],
    ['with a negative size', file(withA({ shape: [-2] }), TWO_DATA), 'safetensors-tensor', 'a'],
    ['with a fractional size', file(withA({ shape: [1.5] }), TWO_DATA), 'safetensors-tensor', 'a'],
    ['with a size given as text', file(withA({ shape: ['2'] }), TWO_DATA), 'safetensors-tensor', 'a'],
    ['with too many dimensions', file(withA({ shape: [2, 1, 1, 1, 1, 1, 1, 1, 1] }), TWO_DATA), 'safetensors-tensor', 'a'],
    ['with a shape whose product overflows', file(withA({ shape: [2 ** 40, 2 ** 40] }), TWO_DATA), 'safetensors-tensor', 'a'],
    ['with a shape larger than its bytes', file(withA({ shape: [3] }), TWO_DATA), 'safetensors-tensor', 'a'],
    ['with offsets that go backwards', file(withA({ data_offsets: [4, 0] }), TWO_DATA), 'safetensors-tensor', 'a'],
    ['with three offsets', file(withA({ data_offsets: [0, 2, 4] }), TWO_DATA), 'safetensors-tensor', 'a'],
    [
      'with a tensor that lies on another',
      file({ a: TWO.a, b: { ...TWO.b, data_offsets: [2, 6] } }, TWO_DATA),
      'safetensors-layout',
      'b',
    ],
    ['with a hole', file({ a: TWO.a, b: { ...TWO.b, data_offsets: [6, 10] } }, [...TWO_DATA, 0, 0]), 'safetensors-layout', 'b'],
    ['with a hole at the start', file({ b: TWO.b }, TWO_DATA), 'safetensors-layout', 'b'],
    ['with bytes behind the last tensor', file(TWO, [...TWO_DATA, 0]), 'safetensors-layout', undefined],
  ])('%s', (_, bytes, code, tensor) => {
    const error = faultOf(bytes);
    expect(error).toBeInstanceOf(ModelError);
    expect(error.code).toBe(code);
    expect(error.tensor).toBe(tensor);
  });

  it('with header bytes that are not UTF-8', () => {
    const bytes = file('{"a":1}');
    bytes[10] = 0xff;
    expect(faultOf(bytes).code).toBe('safetensors-header');
  });

  it('whatever the bytes are, with a typed error or a table that fits the file', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), fc.nat(80), fc.nat(255), (noise, at, value) => {
        const bytes = file(TWO, TWO_DATA);
        bytes[at % bytes.length] = value;
        for (const candidate of [noise, bytes]) {
          try {
            const { tensors } = readSafetensors(candidate);
            for (const tensor of tensors.values()) expect(dequantise(tensor).length).toBe(tensor.numElements);
          } catch (error) {
            expect(error).toBeInstanceOf(ModelError);
          }
        }
      }),
      { numRuns: 2000 },
    );
  });
});
