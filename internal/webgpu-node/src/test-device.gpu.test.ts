import { expect, test } from 'vitest';
import { readF32, storageBuffer } from './test-buffers.ts';
import { requestTestDevice } from './test-device.ts';

const device = await requestTestDevice();

test('what is written to a buffer is read back', async () => {
  const buffer = storageBuffer(device, new Float32Array([1, 2.5, -3]));
  expect([...(await readF32(device, buffer))]).toEqual([1, 2.5, -3]);
  buffer.destroy();
});
