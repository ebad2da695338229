import { gpuEnvironment } from './adapter-probe.ts';

/**
 * Global setup of the vitest project of GPU tests. Runs before its workers are forked, and only when it has files to run:
 * the workers inherit the environment in which WebGPU finds an adapter.
 */
export default async function setup(): Promise<void> {
  Object.assign(process.env, await gpuEnvironment());
}
