import { CommandError } from './process.mjs';
import { importSource } from './source-module.mjs';

/**
 * Sees to it that WebGPU finds an adapter: a GPU where one answers, else a software device unpacked from npm.
 *
 * @returns {Promise<{ note: string, value: Record<string, string> }>} the environment for processes that use WebGPU
 */
export async function softwareGpu() {
  const { gpuEnvironment } = await importSource('internal/webgpu-node', 'src/index.ts');
  try {
    const environment = await gpuEnvironment();
    const note = Object.keys(environment).length === 0 ? 'not needed, WebGPU finds an adapter' : 'ready, there is no GPU here';
    return { note, value: environment };
  } catch (error) {
    throw new CommandError(`WebGPU cannot be had on this machine: ${error.message}`);
  }
}
