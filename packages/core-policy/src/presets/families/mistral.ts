import { readKeyAndValue } from '../attention-heads.ts';
import { attentionLayers, readWindowedLayers } from '../attention-windows.ts';
import type { Family } from '../family.ts';
import { fieldOf, readNumLayers } from '../model-fields.ts';

/**
 * The same attention in every layer, with a window where the config has one: Mistral-7B-v0.1 does, later ones do not. Experts
 * keep nothing, so Mixtral is read the same way.
 * @see huggingface/transformers configuration_mistral.py, configuration_mixtral.py
 */
export const mistral: Family = {
  name: 'mistral',
  modelTypes: ['mistral', 'mixtral'],
  architectures: ['MistralForCausalLM', 'MixtralForCausalLM'],
  read(model, bytes) {
    const numLayers = readNumLayers(model);
    const rows = readKeyAndValue(model, bytes.kv);
    const isWindowed = readWindowedLayers(model, numLayers, () => fieldOf(model, 'sliding_window') !== undefined);
    return { numModelLayers: numLayers, parts: attentionLayers(model, rows, isWindowed), notes: [] };
  },
};
