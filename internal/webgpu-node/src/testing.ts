export { openGpu } from './open-gpu.ts';
export { readBytes, readF32, readU32, storageBuffer } from './test-buffers.ts';
export { requestTestDevice, type TestDeviceOptions } from './test-device.ts';
