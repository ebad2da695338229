import { readKeyAndValue } from '../attention-heads.ts';
import { readWindow } from '../attention-windows.ts';
import type { Family } from '../family.ts';
import { mamba1Part } from '../mamba1-state.ts';
import { type ModelFields, pathOf, readCount, readNumLayers, readSize } from '../model-fields.ts';
import { fullAttentionPart } from '../model-shape.ts';

/**
 * One attention layer in each `attn_layer_period`, at `attn_layer_offset`; Mamba-1 in the others, `mamba_expand` times as wide
 * as the model.
 * @see huggingface/transformers configuration_jamba.py
 */
export const jamba: Family = {
  name: 'jamba',
  modelTypes: ['jamba'],
  architectures: ['JambaForCausalLM'],
  read(model, bytes) {
    const numLayers = readNumLayers(model);
    const isAttention = readAttentionLayers(model);
    const rows = readKeyAndValue(model, bytes.kv);
    const windowSize = readWindow(model);
    const sizes = {
      numChannels: readSize(model, 'mamba_expand') * readSize(model, 'hidden_size'),
      stateSize: readSize(model, 'mamba_d_state'),
      convWidth: readSize(model, 'mamba_d_conv'),
    };
    const parts = Array.from({ length: numLayers }, (_, modelLayer) =>
      isAttention(modelLayer) ? { ...fullAttentionPart(modelLayer, rows), windowSize } : mamba1Part(modelLayer, sizes, bytes),
    );
    return { numModelLayers: numLayers, parts, notes: [] };
  },
};

function readAttentionLayers(model: ModelFields): (layer: number) => boolean {
  const period = readCount(model, 'attn_layer_period', { min: 1, unit: 'layers' });
  const offset = readCount(model, 'attn_layer_offset', { min: 0, unit: 'layers' });
  if (offset >= period) {
    const message = `must be below attn_layer_period, ${period}, got ${offset}.`;
    model.faults.note('config-out-of-range', pathOf(model, 'attn_layer_offset'), offset, message);
  }
  return (layer) => layer % period === offset;
}
