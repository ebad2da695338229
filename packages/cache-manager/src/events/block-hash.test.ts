import { expect, test } from 'vitest';
import { keyToHex, keyToLeadingU64, keyToU64 } from './block-hash.ts';

const key = Uint8Array.from({ length: 32 }, (_, i) => i * 8);

test('a key is 64 hexadecimal digits', () => {
  expect(keyToHex(key)).toBe('0008101820283038404850586068707880889098a0a8b0b8c0c8d0d8e0e8f0f8');
});

test('vLLM takes the end of a key for its hash, TensorRT-LLM the beginning', () => {
  expect(keyToU64(key)).toBe(0xc0c8d0d8e0e8f0f8n);
  expect(keyToLeadingU64(key)).toBe(0x0008101820283038n);
});

test('a key may lie anywhere in a larger buffer', () => {
  const buffer = new Uint8Array(50);
  buffer.set(key, 5);
  expect(keyToU64(buffer.subarray(5, 37))).toBe(0xc0c8d0d8e0e8f0f8n);
});
