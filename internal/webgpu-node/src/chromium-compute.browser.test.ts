import { expect, test } from 'vitest';
import { readU32, storageBuffer } from './test-buffers.ts';
import { requestTestDevice } from './test-device.ts';

const device = await requestTestDevice();

const squares = `
@group(0) @binding(0) var<storage, read_write> numbers: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  numbers[id.x] = id.x * id.x;
}`;

test('a compute shader that runs in Chromium writes what it should', async () => {
  const buffer = storageBuffer(device, 64 * 4);
  const pipeline = device.createComputePipeline({
    layout: 'auto',
    compute: { module: device.createShaderModule({ code: squares }) },
  });
  const group = device.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: [{ binding: 0, resource: { buffer } }],
  });
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, group);
  pass.dispatchWorkgroups(1);
  pass.end();
  device.queue.submit([encoder.finish()]);
  expect([...(await readU32(device, buffer))]).toEqual(Array.from({ length: 64 }, (_, i) => i * i));
});
