import type { Family } from '../family.ts';
import { nextTokenNote, readLatent } from '../latent-rows.ts';
import { readNumLayers, readSize } from '../model-fields.ts';
import { fullAttentionPart, type LayerPart } from '../model-shape.ts';

/**
 * Latent attention as in DeepSeek-V3, and in every layer an indexer that scores all earlier tokens by one `index_key` of
 * `index_head_dim` values each and lets attention read the best `index_topk` alone.
 *
 * Every step reads all index keys and few of the latents, so the two want different homes. A sparsity group is a property of a
 * layer: the indexer is a layer of its own, in the group `indexer`, and its id is the model's index plus the number of layers.
 *
 * Index keys are required in both variants. They are projections of what goes into the layer, not of the latent, so having them
 * again means running the model over the whole prefix.
 * @see huggingface/transformers configuration_deepseek_v32.py: the fields
 * @see vllm-project/vllm deepseek_v2.py, the indexer's cache: 8-bit values and an f32 scale for each 128 of them
 */
export const deepseekV32: Family = {
  name: 'deepseek-v32',
  modelTypes: ['deepseek_v32'],
  architectures: ['DeepseekV32ForCausalLM'],
  read(model, bytes) {
    const numLayers = readNumLayers(model);
    const rows = [readLatent(model, bytes.kv)];
    const indexRows = [{ role: 'index_key', bytes: bytes.indexKey(readSize(model, 'index_head_dim')) }];
    const parts = Array.from({ length: numLayers }, (_, modelLayer): LayerPart[] => [
      fullAttentionPart(modelLayer, rows),
      { kind: 'attention', part: 'indexer', modelLayer, rows: indexRows, sparsityGroup: 'indexer' },
    ]).flat();
    return { numModelLayers: numLayers, parts, notes: [INDEX_KEY_NOTE, ...nextTokenNote(model)] };
  },
};

const INDEX_KEY_NOTE =
  'Index keys are required in both variants: they are made from what goes into a layer, not from its latent, so having them ' +
  'again means running the model over the whole prefix.';
