import type { Family } from '../family.ts';
import { checkGroups, mamba2Part } from '../mamba2-state.ts';
import { checkEqual, readNumLayers, readSize } from '../model-fields.ts';

/**
 * Mamba-2 in every layer, and no attention: a match can end only at a snapshot.
 * @see huggingface/transformers configuration_mamba2.py: heads times width of a head is `expand` times the hidden size
 */
export const mamba2: Family = {
  name: 'mamba2',
  modelTypes: ['mamba2'],
  architectures: ['Mamba2ForCausalLM'],
  read(model, bytes) {
    const numLayers = readNumLayers(model);
    const sizes = {
      numHeads: readSize(model, 'num_heads'),
      headDim: readSize(model, 'head_dim'),
      numGroups: readSize(model, 'n_groups'),
      stateSize: readSize(model, 'state_size'),
      convWidth: readSize(model, 'conv_kernel'),
    };
    checkGroups(model, 'num_heads', sizes);
    const inner = readSize(model, 'expand') * readSize(model, 'hidden_size');
    checkEqual(model, 'num_heads', sizes.numHeads, inner / sizes.headDim, 'expand × hidden_size / head_dim');
    const parts = Array.from({ length: numLayers }, (_, modelLayer) => mamba2Part(modelLayer, sizes, bytes));
    return { numModelLayers: numLayers, parts, notes: [] };
  },
};
