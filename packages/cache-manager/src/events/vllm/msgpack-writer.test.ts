import { decode, encode } from '@msgpack/msgpack';
import { describe, expect, test } from 'vitest';
import { MsgpackWriter } from './msgpack-writer.ts';

/** For long results: comparing bytes one by one takes seconds. */
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

const written = (write: (writer: MsgpackWriter) => void) => {
  const writer = new MsgpackWriter();
  write(writer);
  return writer.finish();
};

const BORDERS = [
  0,
  0x20,
  0x7f,
  0x80,
  0xff,
  0x100,
  0x7fff,
  0x8000,
  0xffff,
  0x10000,
  0x7fffffff,
  0x80000000,
  0xffffffff,
  0x100000000,
  2 ** 53 - 1,
];

describe('a whole number', () => {
  test.each(BORDERS.flatMap((border) => [border, border - 1, -border, -border - 1]).filter(Number.isSafeInteger))(
    '%d takes the fewest bytes',
    (value) => {
      expect(written((writer) => writer.integer(value))).toEqual(encode(value));
      expect(written((writer) => writer.integer(BigInt(value)))).toEqual(encode(value));
    },
  );

  test.each([2n ** 53n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n, -(2n ** 53n), -(2n ** 63n)])(
    '%d is read back as it is',
    (value) => {
      const bytes = written((writer) => writer.integer(value));
      expect(bytes.length).toBe(9);
      expect(decode(bytes, { useBigInt64: true })).toBe(value);
    },
  );
});

test.each([0, 1, 31, 32, 255, 256, 65_535, 65_536])('a text of %d bytes is written as others write it', (length) => {
  const text = 'x'.repeat(length);
  expect(hex(written((writer) => writer.string(text)))).toBe(hex(encode(text)));
});

test('a text is UTF-8, and its length counts bytes', () => {
  const text = 'ä€😀'.repeat(4);
  expect(written((writer) => writer.string(text))).toEqual(encode(text));
});

test.each([0, 1, 15, 16, 65_535, 65_536])('a list of %d is written as others write it', (count) => {
  const bytes = written((writer) => {
    writer.array(count);
    for (let i = 0; i < count; i++) writer.nil();
  });
  expect(hex(bytes)).toBe(hex(encode(new Array(count).fill(null))));
});

test.each([0, 1, 15, 16, 300])('a map of %d is written as others write it', (count) => {
  const bytes = written((writer) => {
    writer.map(count);
    for (let i = 0; i < count; i++) {
      writer.string(`key ${i}`);
      writer.float64(i + 0.5);
    }
  });
  expect(hex(bytes)).toBe(hex(encode(Object.fromEntries(Array.from({ length: count }, (_, i) => [`key ${i}`, i + 0.5])))));
});
