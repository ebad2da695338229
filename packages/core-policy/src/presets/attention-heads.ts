import { checkMultiple, type ModelFields, pathOf, presentKey, readSize } from './model-fields.ts';
import type { TokenRow } from './model-shape.ts';

/** What the class that writes a family's configs leaves out when it has this value. */
export interface HeadDefaults {
  numHeads?: number;
  numKvHeads?: number;
  headDim?: number;
  /** Names of the width of a head, the preferred one first. Default `head_dim`. */
  headDimKeys?: readonly string[];
}

/**
 * The rows that one token adds to an attention layer: `key` and `value`, each `[numKvHeads, headDim]`.
 *
 * Without `num_key_value_heads` every head has its own; without a width of a head the hidden size is divided evenly.
 * @see huggingface/transformers configuration_llama.py: the fields and what they default to
 * @see vllm-project/vllm kv_cache_interface.py, the attention spec: bytes of a page
 */
export function readKeyAndValue(model: ModelFields, valueBytes: number, defaults: HeadDefaults = {}): readonly TokenRow[] {
  const numHeads = readSize(model, 'num_attention_heads', defaults.numHeads);
  const numKvHeads = readSize(model, 'num_key_value_heads', defaults.numKvHeads ?? numHeads);
  if (numHeads % numKvHeads > 0) {
    const message = `must divide num_attention_heads, ${numHeads}, without rest, got ${numKvHeads}.`;
    const key = 'num_key_value_heads';
    model.faults.note('preset-not-divisible', pathOf(model, key), numKvHeads, message);
  }
  const bytes = numKvHeads * readHeadDim(model, numHeads, defaults) * valueBytes;
  return [
    { role: 'key', bytes },
    { role: 'value', bytes },
  ];
}

function readHeadDim(model: ModelFields, numHeads: number, defaults: HeadDefaults): number {
  const key = presentKey(model, defaults.headDimKeys ?? ['head_dim']);
  const headDim = readSize(model, key, defaults.headDim ?? 0);
  if (headDim !== 0) return headDim;
  const hiddenSize = readSize(model, 'hidden_size');
  checkMultiple(model, 'hidden_size', hiddenSize, numHeads, 'num_attention_heads');
  return hiddenSize / numHeads;
}
