import { gpuEnvironment, openGpu } from '@bufferwise-internal/webgpu-node';
import { endWithParent, restartWith } from './restart.ts';

const RESTARTED = 'BUFFERWISE_GPU_RESTARTED';

/** A device of this process's adapter, and what the adapter calls itself. */
export interface OpenDevice {
  device: GPUDevice;
  name: string;
}

/**
 * Opens a WebGPU device: a GPU where there is one, else the software device. See `startWithGpu`.
 *
 * @throws {GpuSetupError} when no adapter can be had, with the way out
 */
export async function openDevice(): Promise<OpenDevice> {
  await startWithGpu();
  const adapter = await openGpu();
  const device = await adapter.requestDevice({ label: 'bufferwise' });
  return { device, name: adapterName(adapter.info) };
}

/**
 * Sees to it that this process can find an adapter. The variables of the software device must be set before a process starts, so
 * this process may start itself again with them and end with the exit code of that run.
 *
 * @throws {GpuSetupError} when neither a GPU nor the software device can be had
 */
export async function startWithGpu(): Promise<void> {
  if (process.env[RESTARTED] !== undefined) {
    endWithParent();
    return;
  }
  const environment = await gpuEnvironment();
  if (Object.keys(environment).length > 0) await restartWith({ ...environment, [RESTARTED]: '1' });
}

/** What an adapter calls itself. */
export function adapterName({ vendor, architecture, device, description }: GPUAdapterInfo): string {
  return description || [vendor, architecture, device].filter(Boolean).join(' ') || 'unnamed adapter';
}
