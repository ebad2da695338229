import { join } from 'node:path';
import { cacheFolder, ensureUnpacked } from './cache-folder.ts';
import { findSparticuzPackage } from './sparticuz-package.ts';
import { readTar } from './tar.ts';

/** The loader and the driver: what a process needs to find a software Vulkan device. */
const FILES = ['libvulkan.so.1', 'libvk_swiftshader.so', 'vk_swiftshader_icd.json'];

let environment: Promise<Record<string, string>> | undefined;

/**
 * Environment variables under which a new process finds a software Vulkan device (SwiftShader), and through it WebGPU.
 * Unpacks the device into the user's cache folder at its first use on a machine (some 15 MB); safe in processes that start
 * together. A process that runs already cannot use them: its loader has read its environment.
 *
 * @returns `VK_ICD_FILENAMES` and `LD_LIBRARY_PATH`, the latter with the current value behind the new folder
 * @throws {GpuSetupError} `no-software-gpu` on another platform than linux-x64, `gpu-unpack`
 */
export function softwareVulkanEnvironment(): Promise<Record<string, string>> {
  environment ??= unpackSwiftShader().then((folder) => ({
    VK_ICD_FILENAMES: join(folder, 'vk_swiftshader_icd.json'),
    LD_LIBRARY_PATH: withFolder(folder, process.env.LD_LIBRARY_PATH),
  }));
  return environment;
}

async function unpackSwiftShader(): Promise<string> {
  const source = await findSparticuzPackage();
  const folder = join(await cacheFolder(), `swiftshader-${source.version}`);
  await ensureUnpacked(folder, FILES, async () => readTar(await source.inflate('swiftshader.tar')));
  return folder;
}

/** Puts a folder in front of a colon-separated list of folders, once. */
export function withFolder(folder: string, list: string | undefined): string {
  const others = (list ?? '').split(':').filter((entry) => entry !== '' && entry !== folder);
  return [folder, ...others].join(':');
}
