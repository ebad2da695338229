import type { EngineModel } from './engine-model.ts';
import { type HybridModelConfig, parseModelConfig } from './model-config.ts';
import { ModelError } from './model-error.ts';
import { readSafetensors } from './safetensors.ts';
import { Tokenizer } from './tokenizer.ts';
import { decodeUtf8 } from './utf8.ts';
import { describeWhaler } from './whaler-description.ts';
import { readWhalerTensors } from './whaler-tensors.ts';

/** The bytes of a model's files, as fetched or read. */
export interface ModelFiles {
  /** `config.json`. */
  config: Uint8Array;
  /** `tokenizer.json`. */
  tokenizer: Uint8Array;
  /** `model.safetensors`. The model keeps views into it: it must not change. */
  weights: Uint8Array;
}

/** A model whose files are sound and fit each other. */
export interface HybridModel extends EngineModel {
  readonly config: HybridModelConfig;
  readonly tokenizer: Tokenizer;
}

/**
 * Reads the files of a model and checks them against each other.
 *
 * @throws {ModelError} `file` names the file at fault; for weights that do not fit the config that is `model.safetensors`
 */
export function readModel(files: ModelFiles): HybridModel {
  const config = inFile('config.json', () => parseModelConfig(parseJson(files.config)));
  const tokenizer = inFile('tokenizer.json', () => new Tokenizer(parseJson(files.tokenizer), { vocabSize: config.vocabSize }));
  const description = describeWhaler(config);
  const tensors = inFile('model.safetensors', () => readWhalerTensors(description, readSafetensors(files.weights).tensors));
  return { config, description, tokenizer, tensors };
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decodeUtf8(bytes));
  } catch (cause) {
    throw new ModelError('model-file', 'The file is not JSON in UTF-8. Fetch it again.', { cause });
  }
}

function inFile<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ModelError) || error.file !== undefined) throw error;
    const { code, message, tensor, offset, faults, cause } = error;
    throw new ModelError(code, `${file}: ${message}`, { file, tensor, offset, faults, cause });
  }
}
