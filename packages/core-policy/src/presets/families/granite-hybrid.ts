import { readKeyAndValue } from '../attention-heads.ts';
import type { Family } from '../family.ts';
import { readPrefixedMamba2 } from '../mamba2-fields.ts';
import { mamba2Part } from '../mamba2-state.ts';
import { presentKey, readLayerKinds, readNumLayers } from '../model-fields.ts';
import { fullAttentionPart } from '../model-shape.ts';

type Kind = 'mamba2' | 'attention';

const KINDS: Readonly<Record<string, Kind>> = {
  mamba: 'mamba2',
  linear_attention: 'mamba2',
  attention: 'attention',
  full_attention: 'attention',
};

/**
 * One word a layer in `layer_types`: Mamba-2 or attention. Sizes of a kind of layer that the model does not have are not asked
 * for: Granite 4.0 Micro is all attention.
 * @see huggingface/transformers configuration_granitemoehybrid.py
 */
export const graniteHybrid: Family = {
  name: 'granite-hybrid',
  modelTypes: ['granitemoehybrid'],
  architectures: ['GraniteMoeHybridForCausalLM'],
  read(model, bytes) {
    const numLayers = readNumLayers(model);
    const kinds = readLayerKinds(model, presentKey(model, ['layer_types', 'layers_block_type']), numLayers, KINDS);
    const rows = kinds.includes('attention') ? readKeyAndValue(model, bytes.kv) : [];
    const sizes = kinds.includes('mamba2') ? readPrefixedMamba2(model) : undefined;
    const parts = kinds.map((kind, modelLayer) =>
      sizes !== undefined && kind === 'mamba2' ? mamba2Part(modelLayer, sizes, bytes) : fullAttentionPart(modelLayer, rows),
    );
    return { numModelLayers: numLayers, parts, notes: [] };
  },
};
