const STORAGE_COPY = 0x80 | 0x04 | 0x08;
const MAP_READ_COPY_DST = 0x01 | 0x08;

/** A buffer that kernels and copies can use: from data, or of so many zero bytes. Sizes round up to 4 bytes. */
export function storageBuffer(device: GPUDevice, content: ArrayBufferView | number, label = 'test buffer'): GPUBuffer {
  const bytes = typeof content === 'number' ? content : content.byteLength;
  const buffer = device.createBuffer({ label, size: Math.max(4, Math.ceil(bytes / 4) * 4), usage: STORAGE_COPY });
  if (typeof content !== 'number') {
    const padded = new Uint8Array(buffer.size);
    padded.set(new Uint8Array(content.buffer, content.byteOffset, content.byteLength));
    device.queue.writeBuffer(buffer, 0, padded);
  }
  return buffer;
}

/** The bytes of a buffer, once everything submitted so far has landed. Offset and size are multiples of 4. */
export async function readBytes(
  device: GPUDevice,
  buffer: GPUBuffer,
  offset = 0,
  size = buffer.size - offset,
): Promise<ArrayBuffer> {
  const staging = device.createBuffer({ label: 'test readback', size, usage: MAP_READ_COPY_DST });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, offset, staging, 0, size);
  device.queue.submit([encoder.finish()]);
  await staging.mapAsync(0x1);
  const bytes = staging.getMappedRange().slice(0);
  staging.destroy();
  return bytes;
}

/** `readBytes` as 32-bit floats. */
export async function readF32(
  device: GPUDevice,
  buffer: GPUBuffer,
  offset = 0,
  size = buffer.size - offset,
): Promise<Float32Array> {
  return new Float32Array(await readBytes(device, buffer, offset, size));
}

/** `readBytes` as unsigned 32-bit integers. */
export async function readU32(
  device: GPUDevice,
  buffer: GPUBuffer,
  offset = 0,
  size = buffer.size - offset,
): Promise<Uint32Array> {
  return new Uint32Array(await readBytes(device, buffer, offset, size));
}
