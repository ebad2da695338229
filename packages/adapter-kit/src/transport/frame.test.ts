import { expect, test } from 'vitest';
import { decodeFrame, encodeFrame, FRAME_HEADER_BYTES } from './frame.ts';

const stream = { request: 'böö', generation: 7, group: 2 };
const body = Uint8Array.from({ length: 21 }, (_, i) => i * 5);
const frame = encodeFrame({ kind: 'pages', stream, index: 9, body });

test('a frame is what it was made of, also in the middle of others', () => {
  const around = Uint8Array.of(...frame, 1, 2, 3);
  expect(decodeFrame(around, 100)).toMatchObject({ kind: 'pages', stream, index: 9, bytes: frame.length, damaged: false });
  expect([...(decodeFrame(around, 100)?.body ?? [])]).toEqual([...body]);
});

test('a frame that is not all there yet is none', () => {
  for (let length = 0; length < frame.length; length++) expect(decodeFrame(frame.subarray(0, length), 100)).toBeNull();
});

test('no flipped bit goes unseen: in the header the connection is lost, behind it the frame', () => {
  for (let bit = 0; bit < frame.length * 8; bit++) {
    const flipped = frame.slice();
    flipped[bit >> 3] ^= 1 << (bit & 7);
    if (bit < FRAME_HEADER_BYTES * 8) {
      expect(() => decodeFrame(flipped, 100), `bit ${bit}`).toThrowError(expect.objectContaining({ code: 'frame-damaged' }));
    } else {
      expect(decodeFrame(flipped, 100), `bit ${bit}`).toMatchObject({ damaged: true, bytes: frame.length });
    }
  }
});

test('a body may be as long as is said, and no longer', () => {
  expect(decodeFrame(frame, 21)).not.toBeNull();
  expect(() => decodeFrame(frame, 20)).toThrowError(expect.objectContaining({ code: 'frame-damaged' }));
});
