import { KernelError } from '../errors/kernel-error.ts';
import { bindingWords } from './binding-words.ts';
import type { Binding, ComputeStep } from './compute-step.ts';
import { BUFFER_USAGE } from './gpu-flags.ts';
import { StepData } from './step-data.ts';

/** Several arrays of 32-bit words behind one binding: for kernels that read more arrays than a device binds. */
export interface JoinedBinding {
  binding: Binding;
  /** First word of each array in the binding, in the order in which they were given. */
  firstWords: readonly number[];
}

/**
 * Makes one binding of several. Arrays of one upload, or of one buffer, are joined by binding the range from the first to the
 * last of them, at no cost; others are copied, one copy each, into a buffer of the caller's.
 *
 * @param label     the kernel
 * @param bindings  only read. Buffers that lie apart need the usage COPY_SRC
 * @param mostBytes the device's `maxStorageBufferBindingSize`
 * @param workspace gives a buffer of at least so many words, to be copied into and bound as storage
 * @throws {KernelError} `kernel-dispatch` when a buffer that lies apart cannot be copied; nothing was added then
 */
export function joinBindings(
  label: string,
  step: ComputeStep,
  bindings: readonly Binding[],
  mostBytes: number,
  workspace: (words: number) => GPUBuffer,
): JoinedBinding {
  const span = spanOf(bindings);
  if (span && 4 * bindingWords(span.binding) <= mostBytes) return span;
  for (const binding of bindings) {
    const { buffer } = placeOf(binding);
    if (!buffer || buffer.usage & BUFFER_USAGE.COPY_SRC) continue;
    const message = `${buffer.label} is joined with tables that lie elsewhere, and cannot be copied to them. Create it with the usage COPY_SRC, or upload all of them with the step.`;
    throw new KernelError('kernel-dispatch', label, message);
  }
  const firstWords: number[] = [];
  let words = 0;
  for (const binding of bindings) {
    firstWords.push(words);
    words += bindingWords(binding);
  }
  const target = workspace(words);
  bindings.forEach((binding, i) => {
    step.copy(binding, target, firstWords[i] * 4);
  });
  return { binding: { buffer: target, offset: 0, size: words * 4 }, firstWords };
}

/** The range that holds all bindings, or undefined when they do not lie in one place. */
export function spanOf(bindings: readonly Binding[]): JoinedBinding | undefined {
  const places = bindings.map(placeOf);
  const [{ buffer, home }] = places;
  if (places.some((place) => place.home !== home)) return undefined;
  const begin = Math.min(...places.map(({ offset }) => offset));
  const size = Math.max(...places.map((place) => place.offset + place.size)) - begin;
  return {
    binding: buffer ? { buffer, offset: begin, size } : new StepData(home, begin, size),
    firstWords: places.map(({ offset }) => (offset - begin) / 4),
  };
}

/** Where a binding lies, in bytes. All data of one step are uploaded to one buffer, so the step stands for it. */
function placeOf(binding: Binding): { buffer: GPUBuffer | undefined; home: object; offset: number; size: number } {
  if (binding instanceof StepData) return { buffer: undefined, home: binding.step, offset: binding.offset, size: binding.size };
  const { buffer, offset = 0, size } = 'buffer' in binding ? binding : { buffer: binding };
  return { buffer, home: buffer, offset, size: size ?? buffer.size - offset };
}
