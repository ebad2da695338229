import { BufferwiseError } from '@bufferwise/core-policy';

/** Why a model could not be read or run. Stable within a major version. */
export type ModelErrorCode =
  /** The weight file ends before what its header promises. */
  | 'safetensors-truncated'
  /** The header is too long, not UTF-8, not JSON, or not a table of tensors. */
  | 'safetensors-header'
  /** One tensor's dtype, shape or offsets are not what the format or this reader allows. */
  | 'safetensors-tensor'
  /** Tensors overlap, leave a hole, or are followed by bytes that belong to none. */
  | 'safetensors-layout'
  /** A GGUF file ends before what it promises. */
  | 'gguf-truncated'
  /** Not a GGUF file, or of a version or byte order that this reader does not take. */
  | 'gguf-header'
  /** A metadata entry has a type, length or value that the format does not allow, or a key twice. */
  | 'gguf-metadata'
  /** One tensor's name, type, shape or offset are not what the format or this reader allows. */
  | 'gguf-tensor'
  /** Tensors of a GGUF file overlap. */
  | 'gguf-layout'
  /** `config.json`, or the metadata of a GGUF file, has missing, unknown or impossible values, or sizes without kernels; `faults` lists all. */
  | 'model-config'
  /** The tensors are not those that the config describes; `faults` lists all differences. */
  | 'model-weights'
  /** `tokenizer.json`, or the tokenizer of a GGUF file, is broken, incomplete, or of a kind that this engine cannot stream. */
  | 'model-tokenizer'
  /** A file is not UTF-8 or not JSON. */
  | 'model-file'
  /** The device has no room for the weights. */
  | 'model-memory'
  /** No tokens, or a token id that the model does not have. */
  | 'model-input';

/** One of several things wrong with one file. */
export interface ModelFault {
  /** What kind of fault, stable within a major version. */
  code: 'missing' | 'unknown' | 'type' | 'range' | 'conflict' | 'shape' | 'unsupported';
  /** The field of the config (`ssm_inner`), the key of the metadata (`llama.block_count`) or the name of the tensor. */
  path: string;
  /** What was found there, and what would do. */
  message: string;
}

/** Where an error of a model was found, as far as it is known. */
export interface ModelErrorDetails {
  /** Name of the file in the model's folder: `model.safetensors`. */
  file?: string;
  /** Name of the tensor at fault. */
  tensor?: string;
  /** Byte of the file at which reading stopped. */
  offset?: number;
  /** All faults found in one pass, for the codes that collect them. */
  faults?: readonly ModelFault[];
  cause?: unknown;
}

/** A model's files are broken, do not fit each other, or were asked for something they cannot do. */
export class ModelError extends BufferwiseError {
  declare readonly code: ModelErrorCode;
  readonly file: string | undefined;
  readonly tensor: string | undefined;
  readonly offset: number | undefined;
  readonly faults: readonly ModelFault[];

  constructor(code: ModelErrorCode, message: string, details: ModelErrorDetails = {}) {
    super(code, message, details.cause === undefined ? undefined : { cause: details.cause });
    this.file = details.file;
    this.tensor = details.tensor;
    this.offset = details.offset;
    this.faults = details.faults ?? [];
  }
}

/** The sentence for several faults: the first few in full, the rest as a count. */
export function describeFaults(faults: readonly ModelFault[]): string {
  const shown = faults.slice(0, 5).map((fault) => `${fault.path}: ${fault.message}`);
  const left = faults.length - shown.length;
  return shown.join('; ') + (left > 0 ? `; and ${left} more (see \`faults\`)` : '');
}
