import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { gpuEnvironment, hasHardwareAdapter } from './adapter-probe.ts';
import { openGpu } from './open-gpu.ts';

test('an adapter is found, for one device each time it is asked for', async () => {
  const devices = [await (await openGpu()).requestDevice(), await (await openGpu()).requestDevice()];
  expect(devices[0]).not.toBe(devices[1]);
  for (const device of devices) device.destroy();
});

test('the environment is one in which a new process finds an adapter', async () => {
  const webgpu = pathToFileURL(createRequire(import.meta.url).resolve('webgpu')).href;
  const look = `globalThis.gpu = (await import('${webgpu}')).create([]); console.log((await gpu.requestAdapter()) !== null)`;
  const env = { ...process.env, ...(await gpuEnvironment()) };
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', look], { env });
  expect(stdout.trim()).toBe('true');
});

test('software is not taken for hardware', async () => {
  const { isFallbackAdapter } = (await openGpu()).info;
  expect(await hasHardwareAdapter()).toBe(!isFallbackAdapter);
});
