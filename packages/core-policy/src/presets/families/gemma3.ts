import { readKeyAndValue } from '../attention-heads.ts';
import { readAttentionStack } from '../attention-windows.ts';
import type { Family } from '../family.ts';
import { checkCausal, presentKey, readCount, readNumLayers } from '../model-fields.ts';

/**
 * A window in all layers but each sixth (`sliding_window_pattern`), unless `layer_types` says otherwise.
 *
 * Published files of the multimodal sizes leave out of `text_config` what has the value of the class: 8 heads, 4 of them for keys
 * and values, each 256 wide, and the pattern.
 * @see huggingface/transformers configuration_gemma3.py
 */
export const gemma3: Family = {
  name: 'gemma3',
  modelTypes: ['gemma3_text'],
  architectures: ['Gemma3ForCausalLM'],
  read(model, bytes) {
    checkCausal(model);
    const numLayers = readNumLayers(model);
    const rows = readKeyAndValue(model, bytes.kv, { numHeads: 8, numKvHeads: 4, headDim: 256 });
    const pattern = readCount(
      model,
      presentKey(model, ['sliding_window_pattern', '_sliding_window_pattern']),
      { min: 1, unit: 'layers' },
      6,
    );
    return readAttentionStack(model, numLayers, rows, (layer) => (layer + 1) % pattern > 0);
  },
};
