import { readKeyAndValue } from '../attention-heads.ts';
import type { Family } from '../family.ts';
import { gatedDeltaPart } from '../gated-delta-state.ts';
import { checkMultiple, fieldOf, type ModelFields, readCount, readLayerKinds, readNumLayers, readSize } from '../model-fields.ts';
import { fullAttentionPart } from '../model-shape.ts';

type Kind = 'gated-delta-net' | 'attention';

const KINDS: Readonly<Record<string, Kind>> = { linear_attention: 'gated-delta-net', full_attention: 'attention' };

/**
 * Attention in each `full_attention_interval`-th layer (default 4), a gated delta net in the others; or as `layer_types` says. The
 * text models of Qwen3.5 have the same fields.
 * @see huggingface/transformers configuration_qwen3_next.py
 */
export const qwen3Next: Family = {
  name: 'qwen3-next',
  modelTypes: ['qwen3_next', 'qwen3_5_text', 'qwen3_5_moe_text'],
  architectures: ['Qwen3NextForCausalLM'],
  read(model, bytes) {
    const numLayers = readNumLayers(model);
    const kinds = readKinds(model, numLayers);
    const rows = readKeyAndValue(model, bytes.kv);
    const sizes = {
      numKeyHeads: readSize(model, 'linear_num_key_heads'),
      keyDim: readSize(model, 'linear_key_head_dim'),
      numValueHeads: readSize(model, 'linear_num_value_heads'),
      valueDim: readSize(model, 'linear_value_head_dim'),
      convWidth: readSize(model, 'linear_conv_kernel_dim'),
    };
    checkMultiple(model, 'linear_num_value_heads', sizes.numValueHeads, sizes.numKeyHeads, 'linear_num_key_heads');
    const parts = kinds.map((kind, modelLayer) =>
      kind === 'attention' ? fullAttentionPart(modelLayer, rows) : gatedDeltaPart(modelLayer, sizes, bytes),
    );
    return { numModelLayers: numLayers, parts, notes: [] };
  },
};

function readKinds(model: ModelFields, numLayers: number): readonly Kind[] {
  if (fieldOf(model, 'layer_types') !== undefined) return readLayerKinds(model, 'layer_types', numLayers, KINDS);
  const interval = readCount(model, 'full_attention_interval', { min: 1, unit: 'layers' }, 4);
  return Array.from({ length: numLayers }, (_, layer) => ((layer + 1) % interval === 0 ? 'attention' : 'gated-delta-net'));
}
