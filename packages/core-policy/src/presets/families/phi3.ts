import { readKeyAndValue } from '../attention-heads.ts';
import { hasWindow, readAttentionStack } from '../attention-windows.ts';
import type { Family } from '../family.ts';
import { readNumLayers } from '../model-fields.ts';

/**
 * The same attention in every layer, with a window where the config has one. Keys and values come out of one fused projection,
 * and are stored like any others.
 * @see huggingface/transformers configuration_phi3.py
 */
export const phi3: Family = {
  name: 'phi3',
  modelTypes: ['phi3'],
  architectures: ['Phi3ForCausalLM'],
  read(model, bytes) {
    return readAttentionStack(model, readNumLayers(model), readKeyAndValue(model, bytes.kv), hasWindow(model));
  },
};
