import { readU32, requestTestDevice, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import { expect, test } from 'vitest';
import { ComputeContext } from './compute-context.ts';
import type { Binding, ComputeStep } from './compute-step.ts';
import { joinBindings } from './joined-binding.ts';

const device = await requestTestDevice();
const context = ComputeContext.of(device);
const MOST = device.limits.maxStorageBufferBindingSize;

const noWorkspace = () => {
  throw new Error('nothing was to be copied');
};

/** What lies at the places of the joined arrays: the first words of each. */
async function firstWordsOf(step: ComputeStep, bindings: Binding[], workspace: (words: number) => GPUBuffer): Promise<number[]> {
  const { binding, firstWords } = joinBindings('test', step, bindings, MOST, workspace);
  const target = storageBuffer(device, 4096);
  step.copy(binding, target);
  step.submit();
  const words = await readU32(device, target);
  return firstWords.map((at) => words[at]);
}

test('arrays of one upload are joined where they lie, with what lies between them', async () => {
  const step = context.step('upload');
  const arrays = [10, 20, 30, 40].map((first) => step.upload(Uint32Array.of(first, first + 1)));
  expect(await firstWordsOf(step, [arrays[3], arrays[1], arrays[2]], noWorkspace)).toEqual([40, 20, 30]);
});

test('ranges of one buffer are joined where they lie', async () => {
  const buffer = storageBuffer(
    device,
    Uint32Array.from({ length: 256 }, (_, i) => i),
  );
  const step = context.step('buffer');
  const ranges = [
    { buffer, offset: 512, size: 8 },
    { buffer, offset: 256 },
  ];
  expect(await firstWordsOf(step, ranges, noWorkspace)).toEqual([128, 64]);
});

test('arrays that lie apart are copied behind one another, one copy each', async () => {
  const workspace = storageBuffer(device, 4096);
  const step = context.step('apart');
  const [one, two] = [storageBuffer(device, Uint32Array.of(1, 2, 3)), storageBuffer(device, Uint32Array.of(7))];
  const three = step.upload(Uint32Array.of(9, 9));
  const asked: number[] = [];
  const arrays = [one, { buffer: two, size: 4 }, three];
  const joined = joinBindings('test', step, arrays, MOST, (words) => {
    asked.push(words);
    return workspace;
  });
  expect(asked).toEqual([6]);
  expect(joined).toMatchObject({ firstWords: [0, 3, 4], binding: { size: 24 } });
  expect(step.submit().numCopies).toBe(3);
  expect([...(await readU32(device, workspace)).subarray(0, 6)]).toEqual([1, 2, 3, 7, 9, 9]);
});

test('a span that is wider than the device binds is copied together', () => {
  const buffer = storageBuffer(device, 4096);
  const step = context.step('wide');
  const ranges = [
    { buffer, offset: 0, size: 4 },
    { buffer, offset: 2048, size: 4 },
  ];
  const { firstWords } = joinBindings('test', step, ranges, 1024, () => storageBuffer(device, 64));
  expect(firstWords).toEqual([0, 1]);
  step.submit();
});

test('a buffer that lies apart and cannot be copied is refused, and nothing is added', () => {
  const step = context.step('refused');
  const sealed = device.createBuffer({ label: 'sealed', size: 16, usage: 0x80 });
  const arrays = [storageBuffer(device, 16), sealed];
  expect(() => joinBindings('test', step, arrays, MOST, noWorkspace)).toThrow('test: sealed is joined with tables');
  expect(step.submit()).toMatchObject({ numDispatches: 0, numCopies: 0 });
});
