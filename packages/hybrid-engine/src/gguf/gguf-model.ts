import { describeTensors } from '../description/describe-tensors.ts';
import type { ModelArchitecture, ModelDescription } from '../description/model-description.ts';
import { tensorFaults } from '../description/tensor-faults.ts';
import type { EngineModel } from '../model/engine-model.ts';
import { describeFaults, ModelError, type ModelFault } from '../model/model-error.ts';
import type { WeightTensor } from '../model/weight-tensor.ts';
import type { Describe } from './architectures/common.ts';
import { describeGemma3 } from './architectures/gemma3.ts';
import { describeGraniteHybrid } from './architectures/granitehybrid.ts';
import { describeLlama } from './architectures/llama.ts';
import { describeMamba2 } from './architectures/mamba2.ts';
import { describeOlmo2 } from './architectures/olmo2.ts';
import { dequantise } from './dequantise.ts';
import type { GgufMetadata } from './metadata.ts';
import { MetadataFields } from './metadata-fields.ts';
import { type GgufFile, readGguf } from './read-gguf.ts';
import { readGgufTokenizer } from './tokenizer/read-gguf-tokenizer.ts';
import type { TextTokenizer } from './tokenizer/text-tokenizer.ts';

/** A model out of a GGUF file whose metadata and tensors fit each other. */
export interface GgufModel extends EngineModel {
  readonly metadata: GgufMetadata;
  /** That of the file, read when it is first asked for: throws what `readGgufTokenizer` throws. */
  readonly tokenizer: TextTokenizer;
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
  let tokenizer: TextTokenizer | undefined;
  return {
    description,
    metadata,
    tensors: takeTensors(description, tensors),
    get tokenizer() {
      tokenizer ??= readGgufTokenizer({ description, metadata });
      return tokenizer;
    },
  };
}

/** All weights of a model as numbers: 4 bytes an element, whatever the file stores. */
export function dequantiseAll({ tensors }: Pick<EngineModel, 'tensors'>): ReadonlyMap<string, Float32Array> {
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
function takeTensors(description: ModelDescription, tensors: GgufFile['tensors']): ReadonlyMap<string, WeightTensor> {
  const expected = describeTensors(description);
  const used = new Map(tensors);
  if (!expected.has(MAY_BE_UNUSED)) used.delete(MAY_BE_UNUSED);
  const faults = tensorFaults(expected, used);
  if (faults.length === 0) return new Map(Array.from(expected.keys(), (name) => [name, used.get(name) as WeightTensor]));
  const message = `The tensors do not fit the metadata: ${describeFaults(faults)}. Take a whole file of a known architecture.`;
  throw new ModelError('model-weights', message, { tensor: faults[0].path, faults });
}
