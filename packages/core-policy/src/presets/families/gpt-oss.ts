import { readKeyAndValue } from '../attention-heads.ts';
import { readAttentionStack } from '../attention-windows.ts';
import type { Family } from '../family.ts';
import { readNumLayers } from '../model-fields.ts';

/**
 * A window in every other layer, the first one included, unless `layer_types` says otherwise.
 *
 * Its attention sinks are weights: one learned score a head that takes part in the softmax and has no value. No token is kept for
 * them, so `numSinkTokens` stays 0.
 * @see huggingface/transformers configuration_gpt_oss.py: the fields; modeling_gpt_oss.py: the sinks
 */
export const gptOss: Family = {
  name: 'gpt-oss',
  modelTypes: ['gpt_oss'],
  architectures: ['GptOssForCausalLM'],
  read(model, bytes) {
    const rule = (layer: number) => layer % 2 === 0;
    const shape = readAttentionStack(model, readNumLayers(model), readKeyAndValue(model, bytes.kv), rule);
    return { ...shape, notes: [SINKS] };
  },
};

const SINKS = 'The learned attention sinks are weights, one score a head: no token is kept for them, and numSinkTokens is 0.';
