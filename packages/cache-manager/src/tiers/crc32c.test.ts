import { expect, test } from 'vitest';
import { crc32c } from './crc32c.ts';

const ascii = (text: string) => Uint8Array.from(text, (char) => char.charCodeAt(0));

test('the sum of the published check value is right', () => {
  expect(crc32c(ascii('123456789'))).toBe(0xe3069283);
});

test('the published sums of 32 bytes are right', () => {
  expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa);
  expect(crc32c(new Uint8Array(32).fill(0xff))).toBe(0x62a8ab43);
  expect(crc32c(Uint8Array.from({ length: 32 }, (_, i) => i))).toBe(0x46dd794e);
});

test('no bytes have the sum 0', () => {
  expect(crc32c(new Uint8Array(0))).toBe(0);
});

test('a flipped bit anywhere changes the sum, whatever the length', () => {
  for (let length = 1; length < 40; length++) {
    const bytes = Uint8Array.from({ length }, (_, i) => i * 37);
    const sum = crc32c(bytes);
    for (let bit = 0; bit < length * 8; bit++) {
      bytes[bit >> 3] ^= 1 << (bit & 7);
      expect(crc32c(bytes)).not.toBe(sum);
      bytes[bit >> 3] ^= 1 << (bit & 7);
    }
  }
});

test('is the same in one piece and in several', () => {
  const bytes = Uint8Array.from({ length: 40 }, (_, i) => (i * 37) & 255);
  for (let cut = 0; cut <= bytes.length; cut++) {
    expect(crc32c(bytes.subarray(cut), crc32c(bytes.subarray(0, cut)))).toBe(crc32c(bytes));
  }
});
