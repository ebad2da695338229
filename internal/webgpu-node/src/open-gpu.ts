import { GpuSetupError, noWebGpu } from './gpu-setup-error.ts';

export interface OpenGpuOptions {
  /** Dawn's own switches, such as `disable-dawn-features=timestamp_quantization`. */
  dawnOptions?: readonly string[];
  powerPreference?: GPUPowerPreference;
}

/**
 * One instance for each set of switches, kept for the life of the process: Dawn's adapters, devices and buffers do not keep
 * their instance alive, and the process crashes on the next call, or at its end, once it was collected.
 */
const instances = new Map<string, GPU>();

/**
 * Finds a WebGPU adapter in this Node process. It serves for one `requestDevice`; ask again for another device.
 * The process ends by itself once nothing is awaited; destroy the device to give its memory back earlier.
 *
 * @throws {GpuSetupError} `no-gpu-adapter` when there is none, `no-webgpu` when npm's `webgpu` is not installed
 */
export async function openGpu(options: OpenGpuOptions = {}): Promise<GPUAdapter> {
  const dawnOptions = [...(options.dawnOptions ?? [])];
  const key = dawnOptions.join(' ');
  let gpu = instances.get(key);
  if (!gpu) {
    const { create } = await import('webgpu').catch((cause: unknown) => {
      throw noWebGpu(cause);
    });
    gpu = create(dawnOptions);
    instances.set(key, gpu);
  }
  const adapter = await gpu.requestAdapter({ powerPreference: options.powerPreference });
  if (adapter) return adapter;
  throw new GpuSetupError(
    'no-gpu-adapter',
    'WebGPU finds no adapter in this process. Start it with the variables that gpuEnvironment() returns: ' +
      'they bring in a software device where there is no GPU, and must be set before the process starts.',
  );
}
