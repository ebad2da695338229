import { readKeyAndValue } from '../attention-heads.ts';
import { hasWindow, readAttentionStack } from '../attention-windows.ts';
import type { Family } from '../family.ts';
import { readNumLayers } from '../model-fields.ts';

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
    return readAttentionStack(model, readNumLayers(model), readKeyAndValue(model, bytes.kv), hasWindow(model));
  },
};
