import type { Binding } from './compute-step.ts';
import { StepData } from './step-data.ts';

/** Several arrays of 32-bit words behind one binding: for kernels that read more arrays than a device binds. */
export interface JoinedBinding {
  binding: Binding;
  /** First word of each array in the binding, in the order in which they were given. */
  firstWords: readonly number[];
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
