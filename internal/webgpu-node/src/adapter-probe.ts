import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { noWebGpu } from './gpu-setup-error.ts';
import { softwareVulkanEnvironment } from './software-vulkan.ts';

/** What WebGPU offers to processes started from here, under their environment. */
type AdapterKind = 'hardware' | 'software' | 'none';

/** Printed by the probe as its last line. A driver that crashes, hangs or cannot be loaded prints nothing. */
const PROBE = `
const { create } = await import(process.argv[1]);
const gpu = create([]);
const adapter = await gpu.requestAdapter();
console.log(!adapter ? 'none' : adapter.info.isFallbackAdapter ? 'software' : 'hardware');
`;

const PROBE_TIMEOUT_MS = 20_000;

let kind: Promise<AdapterKind> | undefined;

/** Whether a GPU answers to WebGPU on this machine. Asked in a child process, once: looking uses an adapter up, and may crash. */
export async function hasHardwareAdapter(): Promise<boolean> {
  return (await adapterKind()) === 'hardware';
}

/**
 * Environment variables to start a process with, so that it finds a WebGPU adapter: none where a GPU answers, or where
 * `VK_ICD_FILENAMES` names a driver that does; else those of the software device. Answered once for each process.
 *
 * @throws {GpuSetupError} `no-webgpu`; `no-software-gpu` or `gpu-unpack` when neither a GPU nor the software device can be had
 */
export async function gpuEnvironment(): Promise<Record<string, string>> {
  const found = await adapterKind();
  const chosenByUser = found === 'software' && process.env.VK_ICD_FILENAMES !== undefined;
  return found === 'hardware' || chosenByUser ? {} : softwareVulkanEnvironment();
}

function adapterKind(): Promise<AdapterKind> {
  kind ??= new Promise((resolve) => {
    const args = ['--input-type=module', '--eval', PROBE, webgpuModule()];
    execFile(process.execPath, args, { timeout: PROBE_TIMEOUT_MS }, (_error, stdout) => {
      const answer = stdout.trim().split('\n').at(-1);
      resolve(answer === 'hardware' || answer === 'software' ? answer : 'none');
    });
  });
  return kind;
}

function webgpuModule(): string {
  try {
    return pathToFileURL(createRequire(import.meta.url).resolve('webgpu')).href;
  } catch (cause) {
    throw noWebGpu(cause);
  }
}
