import type { Family } from '../family.ts';
import { nextTokenNote, readLatent } from '../latent-rows.ts';
import { readNumLayers } from '../model-fields.ts';
import { fullAttentionPart } from '../model-shape.ts';

/**
 * Multi-head latent attention in every layer: one `latent` buffer, whatever the number of heads. Experts keep nothing.
 * @see huggingface/transformers configuration_deepseek_v2.py, configuration_deepseek_v3.py
 */
export const deepseekV3: Family = {
  name: 'deepseek-v3',
  modelTypes: ['deepseek_v2', 'deepseek_v3'],
  architectures: ['DeepseekV2ForCausalLM', 'DeepseekV3ForCausalLM'],
  read(model, bytes) {
    const numLayers = readNumLayers(model);
    const rows = [readLatent(model, bytes.kv)];
    const parts = Array.from({ length: numLayers }, (_, modelLayer) => fullAttentionPart(modelLayer, rows));
    return { numModelLayers: numLayers, parts, notes: nextTokenNote(model) };
  },
};
