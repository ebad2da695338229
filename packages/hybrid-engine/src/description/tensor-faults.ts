import type { ModelFault } from '../model/model-error.ts';
import type { WeightTensor } from '../model/weight-tensor.ts';

/**
 * What keeps tensors from being exactly those of a model: one fault for each that is missing, of another shape, or too many.
 *
 * @param expected shapes by name; outer sizes of 1 may be left out of the file
 */
export function tensorFaults(
  expected: ReadonlyMap<string, readonly number[]>,
  tensors: ReadonlyMap<string, WeightTensor>,
): ModelFault[] {
  const faults: ModelFault[] = [];
  for (const [path, shape] of expected) {
    const found = tensors.get(path)?.shape;
    if (found === undefined) {
      faults.push({ code: 'missing', path, message: `[${shape.join(', ')}] is missing` });
    } else if (!sameShape(found, shape)) {
      faults.push({ code: 'shape', path, message: `is [${found.join(', ')}], the model needs [${shape.join(', ')}]` });
    }
  }
  for (const [path, { shape }] of tensors) {
    if (!expected.has(path)) faults.push({ code: 'unknown', path, message: `[${shape.join(', ')}] has no place in the model` });
  }
  return faults;
}

function sameShape(found: readonly number[], needed: readonly number[]): boolean {
  const inner = (shape: readonly number[]) => shape.slice(shape.findIndex((size) => size !== 1));
  return inner(found).join() === inner(needed).join();
}
