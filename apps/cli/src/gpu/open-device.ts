import { spawnSync } from 'node:child_process';
import { gpuEnvironment, openGpu } from '@bufferwise-internal/webgpu-node';

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
  if (process.env[RESTARTED] === undefined) {
    const environment = await gpuEnvironment();
    if (Object.keys(environment).length > 0) restartWith(environment);
  }
  const adapter = await openGpu();
  const device = await adapter.requestDevice({ label: 'bufferwise' });
  const { vendor, architecture, device: model, description } = adapter.info;
  const name = description || [vendor, architecture, model].filter(Boolean).join(' ') || 'unnamed adapter';
  return { device, name };
}

function restartWith(environment: Readonly<Record<string, string>>): never {
  const args = [...process.execArgv, ...process.argv.slice(1)];
  const { status, signal, error } = spawnSync(process.execPath, args, {
    stdio: 'inherit',
    env: { ...process.env, ...environment, [RESTARTED]: '1' },
  });
  if (error) throw error;
  if (signal) process.kill(process.pid, signal);
  process.exit(status ?? 1);
}
