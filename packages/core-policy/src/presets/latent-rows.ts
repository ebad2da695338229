import { type ModelFields, readSize } from './model-fields.ts';
import type { TokenRow } from './model-shape.ts';

/**
 * The row that one token adds to a layer of multi-head latent attention: one `latent` of `kv_lora_rank` values for all heads
 * and, behind it, the `qk_rope_head_dim` values of the key that carry the position. Keys and values are projections of it, so
 * there is no second buffer.
 * @see huggingface/transformers configuration_deepseek_v3.py: the fields
 * @see vllm-project/vllm kv_cache_interface.py, the MLA spec: one head of both widths together
 */
export function readLatent(model: ModelFields, valueBytes: number): TokenRow {
  return { role: 'latent', bytes: (readSize(model, 'kv_lora_rank') + readSize(model, 'qk_rope_head_dim')) * valueBytes };
}

/** What models with extra layers for predicting several tokens should be told. */
export function nextTokenNote(model: ModelFields): readonly string[] {
  const numLayers = model.fields.num_nextn_predict_layers;
  if (typeof numLayers !== 'number' || !(numLayers > 0)) return [];
  return [
    `Layers that predict further tokens (num_nextn_predict_layers: ${numLayers}) are not counted: add theirs if you run them.`,
  ];
}
