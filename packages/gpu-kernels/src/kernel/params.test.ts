import { expect, test } from 'vitest';
import { KernelError } from '../errors/kernel-error.ts';
import { packParams } from './params.ts';

const layout = { numTokens: 'u32', shift: 'i32', scale: 'f32' } as const;

test('scalars lie in the order of the struct, padded to 16 bytes', () => {
  const bytes = packParams(layout, { scale: 0.5, shift: -2, numTokens: 4_000_000_000 });
  const view = new DataView(bytes.buffer);
  expect(bytes.byteLength).toBe(16);
  expect(view.getUint32(0, true)).toBe(4_000_000_000);
  expect(view.getInt32(4, true)).toBe(-2);
  expect(view.getFloat32(8, true)).toBe(0.5);
});

test('five scalars take 32 bytes, none take 16', () => {
  expect(packParams({ a: 'u32', b: 'u32', c: 'u32', d: 'u32', e: 'u32' }, { a: 1, b: 2, c: 3, d: 4, e: 5 }).byteLength).toBe(32);
  expect(packParams({}, {}).byteLength).toBe(16);
});

test('an integer field takes the integers of its type and nothing else', () => {
  const pack = (numTokens: number, shift: number) => packParams(layout, { numTokens, shift, scale: 0 });
  expect(() => pack(0xffff_ffff, 0x7fff_ffff)).not.toThrow();
  expect(() => pack(0, -0x8000_0000)).not.toThrow();
  expect(() => pack(0x1_0000_0000, 0)).toThrow('numTokens is 4294967296, but the kernel reads u32');
  expect(() => pack(-1, 0)).toThrow(KernelError);
  expect(() => pack(0, 0x8000_0000)).toThrow(KernelError);
  expect(() => pack(0.5, 0)).toThrow(KernelError);
  expect(() => pack(Number.NaN, 0)).toThrow(KernelError);
});
