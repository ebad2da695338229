import { readKeyAndValue } from '../attention-heads.ts';
import { readAttentionStack } from '../attention-windows.ts';
import type { Family } from '../family.ts';
import { checkCausal, readNumLayers } from '../model-fields.ts';

/**
 * A window in every other layer, the first one included, unless `layer_types` says otherwise. Capping of scores keeps nothing.
 * @see huggingface/transformers configuration_gemma2.py
 */
export const gemma2: Family = {
  name: 'gemma2',
  modelTypes: ['gemma2'],
  architectures: ['Gemma2ForCausalLM'],
  read(model, bytes) {
    checkCausal(model);
    return readAttentionStack(model, readNumLayers(model), readKeyAndValue(model, bytes.kv), (layer) => layer % 2 === 0);
  },
};
