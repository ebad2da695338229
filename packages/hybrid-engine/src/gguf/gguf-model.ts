import { describeTensors } from '../description/describe-tensors.ts';
import type { ModelArchitecture, ModelDescription } from '../description/model-description.ts';
import { describeFaults, ModelError, type ModelFault } from '../model/model-error.ts';
import type { Describe } from './architectures/common.ts';
import { describeGemma3 } from './architectures/gemma3.ts';
import { describeGraniteHybrid } from './architectures/granitehybrid.ts';
import { describeLlama } from './architectures/llama.ts';
import { describeMamba2 } from './architectures/mamba2.ts';
import { describeOlmo2 } from './architectures/olmo2.ts';
import { dequantise } from './dequantise.ts';
import type { GgufMetadata } from './metadata.ts';
import { MetadataFields } from './metadata-fields.ts';
import { type GgufFile, type GgufTensor, readGguf } from './read-gguf.ts';

/** A model out of a GGUF file whose metadata and tensors fit each other. */
export interface GgufModel {
  readonly description: ModelDescription;
  readonly metadata: GgufMetadata;
  /** Exactly the tensors of `describeTensors(description)`, still as the file has them. */
  readonly tensors: ReadonlyMap<string, GgufTensor>;
}

const ARCHITECTURES: ReadonlyMap<unknown, Describe> = new Map<ModelArchitecture, Describe>([
  ['llama', describeLlama],
  ['olmo2', describeOlmo2],
  ['gemma3', describeGemma3],
  ['mamba2', describeMamba2],
  ['granitehybrid', describeGraniteHybrid],
]);

/** Files of models without rotary positions may still have factors for them. */
const MAY_BE_UNUSED = 'rope_freqs.weight';

/**
 * Opens a GGUF file and describes the model in it.
 *
 * @param file the whole file; the model keeps views into it, so it must not change
 * @throws {ModelError} what `readGguf` throws; `model-config` for metadata that describes no model this package knows, with one
 *   fault a key; `model-weights` for tensors that do not fit it, with one fault a tensor
 * @example
 * const model = readGgufModel(await (await fetch(url)).arrayBuffer());
 * model.description.layers.length;   // 16
 */
export function readGgufModel(file: Uint8Array | ArrayBuffer): GgufModel {
  const { metadata, tensors } = readGguf(file);
  const description = describe(metadata, tensors);
  return { description, metadata, tensors: takeTensors(description, tensors) };
}

/** All weights of a model as numbers: 4 bytes an element, whatever the file stores. */
export function dequantiseAll({ tensors }: Pick<GgufModel, 'tensors'>): ReadonlyMap<string, Float32Array> {
  return new Map([...tensors].map(([name, tensor]) => [name, dequantise(tensor)]));
}

function describe(metadata: GgufMetadata, tensors: GgufFile['tensors']): ModelDescription {
  const architecture = metadata.get('general.architecture');
  const describeIt = ARCHITECTURES.get(architecture);
  const embedding = tensors.get('token_embd.weight');
  const faults: ModelFault[] = [];
  if (describeIt === undefined) {
    const message = `is ${String(architecture)}, and ${[...ARCHITECTURES.keys()].join(', ')} are known`;
    faults.push({ code: 'unsupported', path: 'general.architecture', message });
  }
  if (embedding === undefined) faults.push({ code: 'missing', path: 'token_embd.weight', message: 'is missing' });
  if (describeIt === undefined || embedding === undefined) throw unfit(faults);
  const fields = new MetadataFields(metadata, String(architecture));
  const description = describeIt({ fields, vocabSize: embedding.shape[0], hasTensor: (name) => tensors.has(name) });
  if (fields.faults.length > 0) throw unfit(fields.faults);
  return description;
}

function unfit(faults: readonly ModelFault[]): ModelError {
  const message = `The GGUF file does not describe a model that this package knows: ${describeFaults(faults)}. Take another file.`;
  return new ModelError('model-config', message, { faults });
}

/** The described tensors, or an error that tells all that are missing, unknown or of another shape. */
function takeTensors(description: ModelDescription, tensors: GgufFile['tensors']): ReadonlyMap<string, GgufTensor> {
  const taken = new Map<string, GgufTensor>();
  const faults: ModelFault[] = [];
  for (const [path, shape] of describeTensors(description)) {
    const tensor = tensors.get(path);
    if (tensor === undefined) faults.push({ code: 'missing', path, message: `[${shape.join(', ')}] is missing` });
    else if (!sameShape(tensor.shape, shape)) {
      const message = `is [${tensor.shape.join(', ')}], the metadata needs [${shape.join(', ')}]`;
      faults.push({ code: 'shape', path, message });
    } else taken.set(path, tensor);
  }
  for (const path of tensors.keys()) {
    if (taken.has(path) || path === MAY_BE_UNUSED || faults.some((fault) => fault.path === path)) continue;
    faults.push({ code: 'unknown', path, message: 'has no place in the model that the metadata describes' });
  }
  if (faults.length === 0) return taken;
  const message = `The tensors do not fit the metadata: ${describeFaults(faults)}. Take a whole file of a known architecture.`;
  throw new ModelError('model-weights', message, { tensor: faults[0].path, faults });
}

/** Outer sizes of 1 may be left out. */
function sameShape(found: readonly number[], needed: readonly number[]): boolean {
  const inner = (shape: readonly number[]) => shape.slice(shape.findIndex((size) => size !== 1));
  return inner(found).join() === inner(needed).join();
}
