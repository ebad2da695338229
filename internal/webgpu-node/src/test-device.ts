import { afterAll, afterEach } from 'vitest';
import { openGpu } from './open-gpu.ts';

export interface TestDeviceOptions {
  requiredFeatures?: readonly GPUFeatureName[];
  requiredLimits?: Readonly<Record<string, number>>;
}

/**
 * A device for the tests of one file. To be called at the top of the file, or of a `describe`:
 * `const device = await requestTestDevice();`
 *
 * A test during which an error reached no error scope fails, with all the messages. The device is destroyed after the last
 * test. Without an adapter this throws: a GPU test is never skipped in silence.
 */
export async function requestTestDevice(options: TestDeviceOptions = {}): Promise<GPUDevice> {
  const adapter = await openGpu();
  const device = await adapter.requestDevice({
    label: 'test device',
    requiredFeatures: [...(options.requiredFeatures ?? [])],
    requiredLimits: { ...options.requiredLimits },
  });
  let errors: string[] = [];
  device.addEventListener('uncapturederror', (event) => {
    // Reported by the failing test instead. Packages without the DOM's types compile this file too, hence the cast.
    (event as unknown as { preventDefault(): void }).preventDefault();
    errors.push(event.error.message);
  });
  afterEach(async () => {
    await device.queue.onSubmittedWorkDone();
    const found = errors;
    errors = [];
    if (found.length > 0) throw new Error(`The device reported errors:\n${found.join('\n')}`);
  });
  afterAll(() => device.destroy());
  return device;
}
