import { spawnSync } from 'node:child_process';
import { GpuSetupError, gpuEnvironment, openGpu } from '@bufferwise-internal/webgpu-node';

const RESTARTED = 'BUFFERWISE_GPU_RESTARTED';

/** A device of this process's adapter, and what the adapter calls itself. */
export interface OpenDevice {
  device: GPUDevice;
  name: string;
}

/**
 * Opens a WebGPU device: a GPU where there is one, else the software device. The variables of the latter must be set before
 * a process starts, so this process may start itself again with them and end with the exit code of that run.
 *
 * @throws {GpuSetupError} when no adapter can be had, with the way out
 */
export async function openDevice(): Promise<OpenDevice> {
  const adapter = await openAdapter();
  const device = await adapter.requestDevice({ label: 'bufferwise' });
  const { vendor, architecture, device: model, description } = adapter.info;
  const name = description || [vendor, architecture, model].filter(Boolean).join(' ') || 'unnamed adapter';
  return { device, name };
}

async function openAdapter(): Promise<GPUAdapter> {
  try {
    return await openGpu();
  } catch (error) {
    if (!(error instanceof GpuSetupError) || process.env[RESTARTED] !== undefined) throw error;
    return restartWith(await gpuEnvironment());
  }
}

function restartWith(environment: Readonly<Record<string, string>>): never {
  const [node, ...args] = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const { status, signal, error } = spawnSync(node, args, {
    stdio: 'inherit',
    env: { ...process.env, ...environment, [RESTARTED]: '1' },
  });
  if (error) throw error;
  if (signal) process.kill(process.pid, signal);
  process.exit(status ?? 1);
}
