import { readKeyAndValue } from '../attention-heads.ts';
import { attentionLayers, readWindowedLayers } from '../attention-windows.ts';
import type { Family } from '../family.ts';
import { fieldOf, readNumLayers } from '../model-fields.ts';

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
    const numLayers = readNumLayers(model);
    const rows = readKeyAndValue(model, bytes.kv);
    const isWindowed = readWindowedLayers(model, numLayers, () => fieldOf(model, 'sliding_window') !== undefined);
    return { numModelLayers: numLayers, parts: attentionLayers(model, rows, isWindowed), notes: [] };
  },
};
