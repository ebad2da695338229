import { BufferwiseError } from '@bufferwise/core-policy';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ModelError } from '../model/model-error.ts';
import { dequantise } from './dequantise.ts';
import { readGguf } from './read-gguf.ts';
import { buildGguf, type FileToWrite, singles, type TensorToWrite, type TypedValue } from './testing/gguf-builder.ts';
import { ORACLE_MODELS, oracleFile } from './testing/oracle-models.ts';

const A: TensorToWrite = { name: 'a', sizes: [3, 2], type: 0, bytes: singles(1, 2, 3, 4, 5, 6) };
const B: TensorToWrite = { name: 'b', sizes: [1], type: 0, bytes: singles(7) };
const SOUND: FileToWrite = { metadata: { 'general.name': [8, 'tiny'] }, tensors: [A, B] };

function faultOf(bytes: Uint8Array): ModelError {
  try {
    readGguf(bytes);
  } catch (error) {
    expect(BufferwiseError.isInstance(error)).toBe(true);
    return error as ModelError;
  }
  throw new Error('the file was accepted');
}

describe('a sound file', () => {
  it.each([2, 3])('of version %i gives its metadata, and tensors with the outermost size first', (version) => {
    const file = readGguf(buildGguf({ ...SOUND, version }));
    expect(file).toMatchObject({ version, alignment: 32 });
    expect([...file.metadata]).toEqual([['general.name', 'tiny']]);
    const [a, b] = [...file.tensors.values()];
    expect(a).toMatchObject({ name: 'a', type: 'F32', shape: [2, 3], numElements: 6 });
    expect([...dequantise(a), ...dequantise(b)]).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });

  it('may have values of every type', () => {
    const values: [TypedValue, unknown][] = [
      [[0, 255], 255],
      [[1, -1], -1],
      [[2, 65535], 65535],
      [[3, -2], -2],
      [[4, 2 ** 32 - 1], 2 ** 32 - 1],
      [[5, -3], -3],
      [[6, 0.5], 0.5],
      [[7, 1], true],
      [[8, 'naïve'], 'naïve'],
      [[10, 2n ** 53n - 1n], 2 ** 53 - 1],
      [[10, 2n ** 64n - 1n], 2n ** 64n - 1n],
      [[11, -4n], -4],
      [[11, -(2n ** 63n)], -(2n ** 63n)],
      [[12, 1e300], 1e300],
      [
        [9, 8, ['a', '', 'c']],
        ['a', '', 'c'],
      ],
      [
        [9, 7, [1, 0]],
        [true, false],
      ],
      [
        [
          9,
          9,
          [
            [4, [1, 2]],
            [8, ['x']],
            [6, []],
          ],
        ],
        [[1, 2], ['x'], []],
      ],
    ];
    const metadata = Object.fromEntries(values.map(([value], i) => [`key.${i}`, value]));
    expect([...readGguf(buildGguf({ metadata })).metadata.values()]).toEqual(values.map(([, expected]) => expected));
  });

  it('may be an ArrayBuffer, begin at any byte, be aligned otherwise, and have holes and nothing at all in it', () => {
    const built = buildGguf({ ...SOUND, alignment: 8, metadata: { 'general.alignment': [4, 8] } });
    const shifted = new Uint8Array(built.length + 3).subarray(3);
    shifted.set(built);
    const { alignment, tensors } = readGguf(shifted);
    expect(alignment).toBe(8);
    expect(dequantise(tensors.get('b')!)).toEqual(Float32Array.of(7));
    expect(readGguf(built.slice().buffer as ArrayBuffer).tensors.size).toBe(2);
    const behindHole = { ...B, offset: 64, bytes: [...new Uint8Array(32), ...singles(7)] };
    expect(dequantise(readGguf(buildGguf({ tensors: [A, behindHole] })).tensors.get('b')!)).toEqual(Float32Array.of(7));
    expect(readGguf(buildGguf({})).tensors.size).toBe(0);
  });

  it('is what the oracle models are, and nothing of them is copied', () => {
    for (const name of ORACLE_MODELS) {
      const bytes = oracleFile(name);
      const { tensors, metadata } = readGguf(bytes);
      expect(metadata.get('general.architecture')).toBe(name.split('-')[0]);
      expect([...tensors.values()].every((tensor) => tensor.bytes.buffer === bytes.buffer)).toBe(true);
    }
  });
});

describe('a broken file is refused', () => {
  const withA = (changes: Partial<TensorToWrite>) => buildGguf({ tensors: [{ ...A, ...changes }, B] });
  const withValue = (value: TypedValue) => buildGguf({ metadata: { key: value } });
  const nested = (depth: number): unknown[] => (depth === 0 ? [4, []] : [9, [nested(depth - 1)]]);
  const twice = buildGguf({ metadata: { ka: [4, 1], kb: [4, 1] } });
  twice[twice.lastIndexOf('b'.charCodeAt(0))] = 'a'.charCodeAt(0);

  it.each<[string, Uint8Array, string, string | undefined]>([
    ['that is empty', new Uint8Array(), 'gguf-truncated', undefined],
    ['of another format', Uint8Array.of(80, 75, 3, 4, 0, 0, 0, 0), 'gguf-header', undefined],
    ['of version 1', buildGguf({ version: 1 }), 'gguf-header', undefined],
    ['of version 4', buildGguf({ version: 4 }), 'gguf-header', undefined],
    ['that is big-endian', buildGguf({ version: 3 << 24 }), 'gguf-header', undefined],
    ['with more tensors than fit into it', buildGguf({ ...SOUND, numTensors: 2n ** 63n }), 'gguf-truncated', undefined],
    ['with more entries than fit into it', buildGguf({ ...SOUND, numEntries: 2n ** 40n }), 'gguf-truncated', undefined],
    ['with a value of an unknown type', withValue([13, 0]), 'gguf-metadata', undefined],
    ['with an array of an unknown type', withValue([9, 77, []]), 'gguf-metadata', undefined],
    ['with a flag that is neither', withValue([7, 2]), 'gguf-metadata', undefined],
    ['with arrays nested too deep', withValue([9, ...(nested(5) as [number, unknown[]])]), 'gguf-metadata', undefined],
    ['with a key twice', twice, 'gguf-metadata', undefined],
    ['with an alignment of 0', buildGguf({ metadata: { 'general.alignment': [4, 0] } }), 'gguf-metadata', undefined],
    ['with an alignment of 48', buildGguf({ metadata: { 'general.alignment': [4, 48] } }), 'gguf-metadata', undefined],
    ['with a textual alignment', buildGguf({ metadata: { 'general.alignment': [8, '32'] } }), 'gguf-metadata', undefined],
    ['with a tensor without sizes', withA({ sizes: [] }), 'gguf-tensor', 'a'],
    ['with a tensor of five sizes', withA({ sizes: [1, 1, 1, 1, 6] }), 'gguf-tensor', 'a'],
    ['with a tensor without elements', withA({ sizes: [3, 0] }), 'gguf-tensor', 'a'],
    ['with a tensor larger than numbers go', withA({ sizes: [2n ** 40n, 2n ** 40n] }), 'gguf-tensor', 'a'],
    ['with a tensor of a type that is not read', withA({ type: 12 }), 'gguf-tensor', 'a'],
    ['with rows that are no whole blocks', withA({ type: 8 }), 'gguf-tensor', 'a'],
    ['with a tensor off its alignment', withA({ offset: 4 }), 'gguf-tensor', 'a'],
    ['with a tensor behind any file', withA({ offset: 2n ** 63n }), 'gguf-tensor', 'a'],
    ['with a name that is too long', withA({ name: 'a'.repeat(65) }), 'gguf-tensor', undefined],
    ['with two tensors of one name', buildGguf({ tensors: [A, { ...B, name: 'a' }] }), 'gguf-tensor', 'a'],
    ['with a tensor that ends behind it', withA({ sizes: [3, 20] }), 'gguf-truncated', 'a'],
    ['with a tensor on another', buildGguf({ tensors: [A, { ...B, offset: 0 }] }), 'gguf-layout', 'a'],
  ])('%s', (_, bytes, code, tensor) => {
    const error = faultOf(bytes);
    expect(error).toBeInstanceOf(ModelError);
    expect(error.code).toBe(code);
    expect(error.tensor).toBe(tensor);
    expect(error.offset).toBeLessThanOrEqual(bytes.length);
  });

  it('with text that is not UTF-8, and the error tells the byte', () => {
    const bytes = buildGguf({ metadata: { k: [8, 'text'] } });
    bytes[bytes.lastIndexOf('e'.charCodeAt(0))] = 0xff;
    expect(faultOf(bytes)).toMatchObject({ code: 'gguf-metadata', offset: 24 + 9 + 4 + 8 + 4 });
  });

  it('with a type by its name where people know one', () => {
    expect(faultOf(buildGguf({ tensors: [{ ...A, type: 12 }] })).message).toContain('Q4_K');
  });

  it('cut off at any byte, or the last tensor is not whole', () => {
    const bytes = buildGguf(SOUND);
    for (let length = 0; length < bytes.length; length++) expect(faultOf(bytes.subarray(0, length)).code).toBe('gguf-truncated');
    expect(readGguf(bytes).tensors.size).toBe(2);
  });

  it('whatever the bytes are, with a typed error or tensors that lie inside of the file', () => {
    const sound = buildGguf({ metadata: { list: [9, 8, ['a', 'b']], n: [10, 3n] }, tensors: [A, B] });
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(sound.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 }), (changes) => {
        const bytes = sound.slice();
        for (const [at, value] of changes) bytes[at] = value;
        try {
          for (const tensor of readGguf(bytes).tensors.values()) expect(dequantise(tensor)).toHaveLength(tensor.numElements);
        } catch (error) {
          expect(error).toBeInstanceOf(ModelError);
        }
      }),
      { numRuns: 2000 },
    );
  });
});
