/** Why there is no device, for people. */
export class NoDeviceError extends Error {
  override readonly name = 'NoDeviceError';
}

/** @throws {NoDeviceError} where the browser has no WebGPU, or nothing that it runs on */
export async function openDevice(): Promise<{ device: GPUDevice; name: string }> {
  if (navigator.gpu === undefined) throw new NoDeviceError('This browser has no WebGPU in workers.');
  const adapter = await navigator.gpu.requestAdapter();
  if (adapter === null) throw new NoDeviceError('The browser knows WebGPU, but finds no graphics device that it may use.');
  const device = await adapter.requestDevice({ label: 'bufferwise playground' });
  const { vendor, architecture, description } = adapter.info;
  return { device, name: description || [vendor, architecture].filter(Boolean).join(' ') || 'a graphics device' };
}
