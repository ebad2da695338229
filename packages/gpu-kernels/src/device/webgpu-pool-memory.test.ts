import { expect, test, vi } from 'vitest';
import { GpuError } from '../errors/gpu-error.ts';
import { DeviceLoss, DeviceLostError } from './device-lost.ts';
import { WebGpuPageDevice } from './webgpu-page-device.ts';

const spec = { label: 'group 0 pool 0', slotBytes: 16, numSlots: 2 };

/** As much of a device as making a pool touches: its error scopes answer with the given messages. */
function failingDevice(failure: { outOfMemory?: string; validation?: string; lost?: GPUDeviceLostInfo }): GPUDevice {
  const scopes: string[] = [];
  const buffer = { destroy: vi.fn() };
  return {
    label: 'failing',
    limits: {
      maxBufferSize: 1024,
      maxStorageBufferBindingSize: 1024,
      minUniformBufferOffsetAlignment: 256,
      minStorageBufferOffsetAlignment: 256,
    },
    adapterInfo: { isFallbackAdapter: false },
    queue: { onSubmittedWorkDone: async () => {} },
    lost: failure.lost ? Promise.resolve(failure.lost) : new Promise(() => {}),
    createBuffer: () => buffer,
    pushErrorScope: (filter: string) => scopes.push(filter),
    popErrorScope: async () => {
      const message = scopes.pop() === 'out-of-memory' ? failure.outOfMemory : failure.validation;
      return message === undefined ? null : { message };
    },
  } as unknown as GPUDevice;
}

test('memory that exists is ready and counted, until it is destroyed once or twice', async () => {
  const pages = new WebGpuPageDevice(failingDevice({}));
  const pool = pages.createPool(spec);
  await expect(pool.ready).resolves.toBeUndefined();
  expect(pages.allocatedBytes).toBe(32);
  pool.destroy();
  pool.destroy();
  expect(pages.allocatedBytes).toBe(0);
});

test('a device out of memory rejects `ready`, and counts nothing afterwards', async () => {
  const pages = new WebGpuPageDevice(failingDevice({ outOfMemory: 'no more' }));
  const pool = pages.createPool(spec);
  await expect(pool.ready).rejects.toMatchObject({
    code: 'pool-out-of-memory',
    pool: 'group 0 pool 0',
    message: expect.stringContaining('no memory for 32 bytes: no more'),
  });
  expect(pages.allocatedBytes).toBe(0);
  expect(pool.destroyed).toBe(true);
});

test('a buffer that the driver refuses rejects `ready`', async () => {
  const pool = new WebGpuPageDevice(failingDevice({ validation: 'too odd' })).createPool(spec);
  await expect(pool.ready).rejects.toMatchObject({ code: 'pool-refused' });
});

test('a lost device rejects `ready`, and says so to whoever waits for it', async () => {
  const pages = new WebGpuPageDevice(failingDevice({ lost: { reason: 'unknown', message: 'unplugged.' } as GPUDeviceLostInfo }));
  await expect(pages.createPool(spec).ready).rejects.toBeInstanceOf(DeviceLostError);
  expect(await pages.lost).toMatchObject({
    code: 'device-lost',
    reason: 'unknown',
    message: expect.stringContaining('unplugged.'),
  });
});

test('a device that lives has no loss to tell', () => {
  expect(new DeviceLoss(failingDevice({})).error).toBeUndefined();
});

test('errors of this package bear the mark of Bufferwise errors', () => {
  expect((new GpuError('some-code', 'text') as unknown as Record<symbol, unknown>)[Symbol.for('bufferwise.error')]).toBe(true);
});
