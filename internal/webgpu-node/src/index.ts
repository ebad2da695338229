export { gpuEnvironment, hasHardwareAdapter } from './adapter-probe.ts';
export { cacheFolder } from './cache-folder.ts';
export { type ChromiumLaunch, chromiumForTests } from './chromium-for-tests.ts';
export { GpuSetupError, type GpuSetupErrorCode } from './gpu-setup-error.ts';
export { type OpenGpuOptions, openGpu } from './open-gpu.ts';
export { softwareVulkanEnvironment } from './software-vulkan.ts';
