import { expect, test } from 'vitest';
import { DeviceLimitError } from '../errors/device-error.ts';
import { poolBytes, requiredLimits } from './limits.ts';

const MiB = 2 ** 20;
const pool = (mib: number) => ({ label: `${mib} MiB`, slotBytes: MiB, numSlots: mib });

test('pools within the defaults need no limits', () => {
  expect(requiredLimits([])).toEqual({});
  expect(requiredLimits([pool(1), pool(128)])).toEqual({});
});

test('the largest pool decides, for each limit by itself', () => {
  expect(requiredLimits([pool(129), pool(3)])).toEqual({ maxStorageBufferBindingSize: 129 * MiB });
  expect(requiredLimits([pool(256)])).toEqual({ maxStorageBufferBindingSize: 256 * MiB });
  expect(requiredLimits([pool(200), pool(257), pool(256)])).toEqual({
    maxStorageBufferBindingSize: 257 * MiB,
    maxBufferSize: 257 * MiB,
  });
});

test('what the adapter lacks is named with the limit and the bytes', () => {
  const adapter = { maxBufferSize: 300 * MiB, maxStorageBufferBindingSize: 200 * MiB };
  expect(requiredLimits([pool(200)], adapter)).toEqual({ maxStorageBufferBindingSize: 200 * MiB });
  const refused = () => requiredLimits([pool(200), pool(201)], adapter);
  expect(refused).toThrow(DeviceLimitError);
  expect(refused).toThrow('201 MiB (201 slots of 1048576 bytes) needs maxStorageBufferBindingSize 210763776, there is 209715200');
  try {
    requiredLimits([pool(301)], adapter);
  } catch (error) {
    expect(error).toMatchObject({ code: 'device-limit', limit: 'maxBufferSize', needed: 301 * MiB, available: 300 * MiB });
  }
});

test('the bytes of a pool are its slots times their size', () => {
  expect(poolBytes({ label: '', slotBytes: 12, numSlots: 5 })).toBe(60);
});
