import { readU32, requestTestDevice, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import { describe, expect, test } from 'vitest';
import { KernelError } from '../errors/kernel-error.ts';
import { ComputeContext } from './compute-context.ts';
import { defineKernel } from './kernel.ts';
import { packParams } from './params.ts';

const device = await requestTestDevice();
const context = ComputeContext.of(device);

/** `target[i] = target[i] * factor + source[i]`, one invocation for each of `length` words. */
const scaleAdd = defineKernel({
  label: 'scale-add',
  code: /* wgsl */ `
    override factor: u32 = 1;
    struct Params { length: u32 }
    @group(0) @binding(0) var<storage, read_write> target_words: array<u32>;
    @group(0) @binding(1) var<storage, read> source: array<u32>;
    @group(0) @binding(2) var<uniform> params: Params;
    @compute @workgroup_size(4)
    fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
      let i = (group.y * groups.x + group.x) * 4 + lane;
      if (i < params.length) { target_words[i] = target_words[i] * factor + source[i]; }
    }`,
  bindings: { target_words: 'storage', source: 'read-only-storage', params: 'uniform' },
  constants: { factor: 1 },
  workgroupSize: () => [4, 1, 1],
  workgroups: ({ length }: { length: number }) => Math.ceil(length / 4),
});

const lengthParams = (length: number) => packParams({ length: 'u32' }, { length });

describe('a step', () => {
  test('runs its operations in order, in one submission with one upload', async () => {
    const target = storageBuffer(device, new Uint32Array([1, 2, 3, 4, 5]));
    const copy = storageBuffer(device, 20);
    const step = context.step('ordered');
    const source = step.upload(new Uint32Array([10, 10, 10, 10, 10]));
    const params = step.upload(lengthParams(5));
    const bindings = { target_words: target, source, params };
    step.dispatch(scaleAdd, { shape: { length: 5 }, bindings });
    step.dispatch(scaleAdd, { shape: { length: 5 }, constants: { factor: 2 }, bindings });
    step.copy(target, copy);
    step.dispatch(scaleAdd, { shape: { length: 5 }, bindings });
    expect(step.submit()).toEqual({ numDispatches: 3, numCopies: 1, uploadedBytes: 256 + 16 });
    expect([...(await readU32(device, copy))]).toEqual([32, 34, 36, 38, 40]);
    expect([...(await readU32(device, target))]).toEqual([42, 44, 46, 48, 50]);
  });

  test('binds ranges of buffers', async () => {
    const target = storageBuffer(device, new Uint32Array(128));
    const source = storageBuffer(
      device,
      Uint32Array.from({ length: 128 }, (_, i) => i),
    );
    const step = context.step('ranges');
    step.dispatch(scaleAdd, {
      shape: { length: 64 },
      bindings: {
        target_words: { buffer: target, offset: 256, size: 256 },
        source: { buffer: source, offset: 256 },
        params: step.upload(lengthParams(64)),
      },
    });
    step.submit();
    const found = await readU32(device, target);
    expect([...found.subarray(0, 64)]).toEqual(new Array(64).fill(0));
    expect([...found.subarray(64)]).toEqual(Array.from({ length: 64 }, (_, i) => 64 + i));
  });

  test('copies data it uploads', async () => {
    const target = storageBuffer(device, 16);
    const step = context.step('upload copy');
    step.copy(step.upload(new Uint32Array([7, 8])), target, 4);
    step.submit();
    expect([...(await readU32(device, target))]).toEqual([0, 7, 8, 0]);
  });

  test('clears ranges in order with its other operations', async () => {
    const target = storageBuffer(device, new Uint32Array([1, 2, 3, 4]));
    const step = context.step('clear');
    step.clear({ buffer: target, offset: 4, size: 8 });
    step.copy(step.upload(new Uint32Array([9])), target, 8);
    expect(step.submit().numCopies).toBe(2);
    expect([...(await readU32(device, target))]).toEqual([1, 0, 9, 4]);
  });

  test('sees its own data also while another step is open and when the upload buffer grows in between', async () => {
    const first = storageBuffer(device, 64);
    const second = storageBuffer(device, 400_000);
    const small = context.step('small');
    const large = context.step('large');
    const smallBindings = {
      target_words: first,
      source: small.upload(new Uint32Array(16).fill(3)),
      params: small.upload(lengthParams(16)),
    };
    const largeBindings = {
      target_words: second,
      source: large.upload(new Uint32Array(100_000).fill(5)),
      params: large.upload(lengthParams(100_000)),
    };
    large.dispatch(scaleAdd, { shape: { length: 100_000 }, bindings: largeBindings });
    small.dispatch(scaleAdd, { shape: { length: 16 }, bindings: smallBindings });
    large.submit();
    small.submit();
    expect([...(await readU32(device, first))]).toEqual(new Array(16).fill(3));
    expect((await readU32(device, second)).every((word) => word === 5)).toBe(true);
  });

  test('reaches every word of a row of more than 65,535 workgroups', async () => {
    const length = 4 * 65_536 + 1;
    const target = storageBuffer(device, length * 4);
    const step = context.step('long row');
    const source = step.upload(new Uint32Array(length).fill(1));
    step.dispatch(scaleAdd, {
      shape: { length },
      bindings: { target_words: target, source, params: step.upload(lengthParams(length)) },
    });
    step.submit();
    expect((await readU32(device, target)).every((word) => word === 1)).toBe(true);
  });

  test('without work submits nothing, and no dispatch is added for an empty shape', () => {
    const target = storageBuffer(device, 4);
    const step = context.step('empty');
    step.dispatch(scaleAdd, { shape: { length: 0 }, bindings: { target_words: target, source: target, params: target } });
    expect(step.submit()).toEqual({ numDispatches: 0, numCopies: 0, uploadedBytes: 0 });
  });
});

describe('a step refuses', () => {
  const target = storageBuffer(device, 512);
  const source = storageBuffer(device, 512);
  const shape = { length: 4 };

  test('a buffer bound for reading and for writing at once, by name', () => {
    const step = context.step('conflict');
    const params = step.upload(lengthParams(4));
    expect(() =>
      step.dispatch(scaleAdd, { shape, bindings: { target_words: target, source: { buffer: target, offset: 256 }, params } }),
    ).toThrow('target_words is written and source is read in the same buffer');
    expect(() => step.dispatch(scaleAdd, { shape, bindings: { target_words: target, source, params } })).not.toThrow();
  });

  test('a missing binding', () => {
    const step = context.step('missing');
    const bindings = { target_words: target, source } as never;
    expect(() => step.dispatch(scaleAdd, { shape, bindings })).toThrow('binding params is missing');
  });

  test('data of another step', () => {
    const params = context.step('other').upload(lengthParams(4));
    const step = context.step('mixed');
    expect(() => step.dispatch(scaleAdd, { shape, bindings: { target_words: target, source, params } })).toThrow('another step');
    expect(() => step.copy(params, target)).toThrow('another step');
  });

  test('any use after it was submitted', () => {
    const step = context.step('used');
    step.submit();
    expect(() => step.upload(new Uint8Array(4))).toThrow('submitted already');
    expect(() => step.copy(source, target)).toThrow(KernelError);
    expect(() => step.submit()).toThrow(KernelError);
  });

  test('more workgroups than the device launches', () => {
    const step = context.step('too many');
    const wide = { ...scaleAdd, workgroups: () => [65_536, 1, 1] as const };
    const bindings = { target_words: target, source, params: step.upload(lengthParams(4)) };
    expect(() => step.dispatch(wide, { shape, bindings })).toThrow('maxComputeWorkgroupsPerDimension 65535');
  });
});

describe('a kernel', () => {
  test('that needs a feature or a limit beyond the device is refused by name', async () => {
    const needsFeature = { ...scaleAdd, label: 'needs-feature', features: ['shader-f16'] as const };
    await expect(context.warmUp(needsFeature)).rejects.toThrow('needs the feature shader-f16');
    const needsMemory = { ...scaleAdd, label: 'needs-memory', workgroupStorageBytes: () => 2 ** 20 };
    await expect(context.warmUp(needsMemory)).rejects.toThrow('needs maxComputeWorkgroupStorageSize 1048576');
    await expect(context.warmUp(needsMemory)).rejects.toMatchObject({ code: 'kernel-unsupported', label: 'needs-memory' });
    await expect(context.warmUp(scaleAdd, { factor: 3 })).resolves.toBeUndefined();
  });

  test('with faulty code is reported with the line of the fault', async () => {
    device.pushErrorScope('validation');
    const faulty = { ...scaleAdd, label: 'faulty', code: scaleAdd.code.replace('let i', 'let i: f32') };
    await expect(context.warmUp(faulty)).rejects.toMatchObject({
      code: 'kernel-compile',
      message: expect.stringMatching(/line 9/),
    });
    expect(await device.popErrorScope()).not.toBeNull();
  });
});

test('a device has one context', () => {
  expect(ComputeContext.of(device)).toBe(context);
});
