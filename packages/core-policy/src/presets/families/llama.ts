import { readKeyAndValue } from '../attention-heads.ts';
import type { Family } from '../family.ts';
import { readNumLayers } from '../model-fields.ts';
import { fullAttentionPart } from '../model-shape.ts';

/**
 * Full attention in every layer.
 * @see huggingface/transformers configuration_llama.py
 */
export const llama: Family = {
  name: 'llama',
  modelTypes: ['llama'],
  architectures: ['LlamaForCausalLM'],
  read(model, bytes) {
    const numLayers = readNumLayers(model);
    const rows = readKeyAndValue(model, bytes.kv);
    const parts = Array.from({ length: numLayers }, (_, modelLayer) => fullAttentionPart(modelLayer, rows));
    return { numModelLayers: numLayers, parts, notes: [] };
  },
};
