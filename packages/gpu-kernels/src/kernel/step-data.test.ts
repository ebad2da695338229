import { expect, test } from 'vitest';
import { UploadStaging } from './step-data.ts';

test('pieces begin at aligned offsets and keep their bytes while the memory grows', () => {
  const staging = new UploadStaging(256);
  const pieces = [3, 256, 5000, 1].map((length, i) => new Uint8Array(length).fill(i + 1));
  const places = pieces.map((piece) => staging.append(piece));
  expect(places).toEqual([
    { offset: 0, size: 4 },
    { offset: 256, size: 256 },
    { offset: 512, size: 5000 },
    { offset: 5632, size: 4 },
  ]);
  expect(staging.length).toBe(5636);
  places.forEach(({ offset }, i) => {
    expect([...staging.bytes.subarray(offset, offset + pieces[i].length)]).toEqual([...pieces[i]]);
  });
});

test('what rounding adds is zero, also in memory that was used before', () => {
  const staging = new UploadStaging(256);
  staging.append(new Uint8Array(8).fill(9));
  staging.reset();
  expect(staging.length).toBe(0);
  expect(staging.append(new Uint8Array([1, 2, 3, 4, 5]))).toEqual({ offset: 0, size: 8 });
  expect([...staging.bytes.subarray(0, 8)]).toEqual([1, 2, 3, 4, 5, 0, 0, 0]);
});

test('a view is taken with its own offset and length', () => {
  const staging = new UploadStaging(256);
  staging.append(new Int32Array([1, 2, 3, 4]).subarray(1, 3));
  expect([...new Int32Array(staging.bytes.buffer, 0, 2)]).toEqual([2, 3]);
  expect(staging.length).toBe(8);
});
