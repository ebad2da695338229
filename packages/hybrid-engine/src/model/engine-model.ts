import type { ModelDescription } from '../description/model-description.ts';
import type { TextTokenizer } from '../gguf/tokenizer/text-tokenizer.ts';
import type { WeightTensor } from './weight-tensor.ts';

/** What the engine can run, whatever file it comes from: `readModel` and `readGgufModel` give one. */
export interface EngineModel {
  readonly description: ModelDescription;
  readonly tokenizer: TextTokenizer;
  /** Exactly the tensors of `describeTensors(description)`, as their file stores them. */
  readonly tensors: ReadonlyMap<string, WeightTensor>;
}
