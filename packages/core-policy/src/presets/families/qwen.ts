import { readKeyAndValue } from '../attention-heads.ts';
import { readAttentionStack } from '../attention-windows.ts';
import type { Family } from '../family.ts';
import { fieldOf, type ModelFields, pathOf, readCount, readFlag, readNumLayers } from '../model-fields.ts';

/**
 * Full attention, unless `use_sliding_window` is on: then the layers from `max_window_layers` on have a window, or those
 * that `layer_types` names. The window alone means nothing here: most files have one and do not use it. Experts keep nothing,
 * so the mixtures are read the same way; as versions of them disagree on which layers a window is for, they must say it in
 * `layer_types`.
 * @see huggingface/transformers configuration_qwen2.py, configuration_qwen3.py and the same of qwen2_moe and qwen3_moe
 */
export const qwen: Family = {
  name: 'qwen',
  modelTypes: ['qwen2', 'qwen3', 'qwen2_moe', 'qwen3_moe'],
  architectures: ['Qwen2ForCausalLM', 'Qwen3ForCausalLM', 'Qwen2MoeForCausalLM', 'Qwen3MoeForCausalLM'],
  read(model, bytes) {
    const numLayers = readNumLayers(model);
    const rows = readKeyAndValue(model, bytes.kv);
    const usesWindow = readFlag(model, 'use_sliding_window');
    return readAttentionStack(model, numLayers, rows, usesWindow ? layersFrom(firstWindowedLayer(model)) : () => false);
  },
};

function layersFrom(first: number): (layer: number) => boolean {
  return (layer) => layer >= first;
}

function firstWindowedLayer(model: ModelFields): number {
  if (fieldOf(model, 'layer_types') !== undefined) return 0;
  if (String(fieldOf(model, 'model_type')).endsWith('_moe')) {
    const message = 'is missing; say in one word for each layer which of them the window is for.';
    model.faults.note('config-missing', pathOf(model, 'layer_types'), undefined, message);
    return Number.NaN;
  }
  return readCount(model, 'max_window_layers', { min: 0, unit: 'layers' });
}
