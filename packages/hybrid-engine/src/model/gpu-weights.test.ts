import { expect, it } from 'vitest';
import { GpuWeights } from './gpu-weights.ts';
import { readModel } from './model.ts';
import { whalerFiles } from './testing/whaler-files.ts';

const model = readModel(whalerFiles());

/** A device that only counts: bytes of the buffers that are alive. */
class CountingDevice {
  aliveBytes = 0;
  numMade = 0;
  readonly limits: { maxStorageBufferBindingSize: number; maxBufferSize: number };
  readonly queue = { writeBuffer() {} };
  readonly #outOfMemory: { message: string } | null;

  constructor(maxBytes: number, outOfMemory: { message: string } | null = null) {
    this.limits = { maxStorageBufferBindingSize: maxBytes, maxBufferSize: maxBytes };
    this.#outOfMemory = outOfMemory;
  }

  pushErrorScope(): void {}

  async popErrorScope(): Promise<unknown> {
    return this.#outOfMemory;
  }

  createBuffer({ size }: { size: number }): { destroy(): void } {
    this.aliveBytes += size;
    this.numMade++;
    return {
      destroy: () => {
        this.aliveBytes -= size;
      },
    };
  }
}

const upload = (device: CountingDevice, changes: object = {}) =>
  GpuWeights.upload(device as unknown as GPUDevice, { ...model, description: { ...model.description, ...changes } });

it('uploaded weights account for every byte, and give it back', async () => {
  const device = new CountingDevice(2 ** 27);
  const weights = await upload(device);
  expect(weights.bytes).toBe(device.aliveBytes);
  weights.destroy();
  expect(device.aliveBytes).toBe(0);
});

it('weights that do not fit the config are refused before anything is allocated', async () => {
  const device = new CountingDevice(2 ** 27);
  await expect(upload(device, { tiedOutput: false })).rejects.toMatchObject({ code: 'model-weights' });
  expect(device.numMade).toBe(0);
});

it('a matrix beyond the bindings of the device is refused by name, and nothing stays allocated', async () => {
  const device = new CountingDevice(200_000);
  await expect(upload(device)).rejects.toMatchObject({ code: 'model-memory', tensor: 'token_embd.weight' });
  expect(device.numMade).toBeGreaterThan(0);
  expect(device.aliveBytes).toBe(0);
});

it('a device without memory is a refusal, and nothing stays allocated', async () => {
  const device = new CountingDevice(2 ** 27, { message: 'no memory' });
  await expect(upload(device)).rejects.toMatchObject({ code: 'model-memory' });
  expect(device.numMade).toBeGreaterThan(0);
  expect(device.aliveBytes).toBe(0);
});
