import type { ModelFields } from './model-fields.ts';
import type { ModelShape, ValueBytes } from './model-shape.ts';

/** Models whose caches have the same shape, up to numbers. */
export type PresetFamily =
  | 'llama'
  | 'mistral'
  | 'phi3'
  | 'qwen'
  | 'gemma2'
  | 'gemma3'
  | 'gpt-oss'
  | 'jamba'
  | 'nemotron-h'
  | 'granite-hybrid'
  | 'qwen3-next'
  | 'falcon-h1'
  | 'mamba2'
  | 'deepseek-v3'
  | 'deepseek-v32';

/** How one family is known and read. */
export interface Family {
  readonly name: PresetFamily;
  /** Values of `model_type` that name it. */
  readonly modelTypes: readonly string[];
  /** Values of `architectures` that name it, where `model_type` does not. */
  readonly architectures: readonly string[];
  /** Reads the fields it needs; faults are noted, and what comes back then is not used. */
  read(model: ModelFields, bytes: ValueBytes): ModelShape;
}
