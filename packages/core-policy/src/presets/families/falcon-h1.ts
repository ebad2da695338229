import { readKeyAndValue } from '../attention-heads.ts';
import type { Family } from '../family.ts';
import { readPrefixedMamba2 } from '../mamba2-fields.ts';
import { mamba2Part } from '../mamba2-state.ts';
import { readNumLayers } from '../model-fields.ts';
import { fullAttentionPart } from '../model-shape.ts';

/**
 * Attention and Mamba-2 side by side in every layer. A layer of a cache config is one or the other, so each model layer becomes
 * two: attention keeps the model's index, Mamba-2 gets that index plus the number of layers.
 * @see huggingface/transformers configuration_falcon_h1.py
 */
export const falconH1: Family = {
  name: 'falcon-h1',
  modelTypes: ['falcon_h1'],
  architectures: ['FalconH1ForCausalLM'],
  read(model, bytes) {
    const numLayers = readNumLayers(model);
    const rows = readKeyAndValue(model, bytes.kv);
    const sizes = readPrefixedMamba2(model);
    const parts = Array.from({ length: numLayers }, (_, modelLayer) => [
      fullAttentionPart(modelLayer, rows),
      mamba2Part(modelLayer, sizes, bytes),
    ]).flat();
    return { numModelLayers: numLayers, parts, notes: [] };
  },
};
