import { describe } from '../../config/read-fields.ts';
import { readKeyAndValue } from '../attention-heads.ts';
import type { Family } from '../family.ts';
import { checkGroups, mamba2Part } from '../mamba2-state.ts';
import {
  fieldOf,
  MAX_LAYERS,
  type ModelFields,
  pathOf,
  presentKey,
  readLayerKinds,
  readNumLayers,
  readSize,
} from '../model-fields.ts';
import { fullAttentionPart, type LayerPart } from '../model-shape.ts';

type Kind = 'mamba2' | 'attention' | 'nothing';

const BY_LETTER: Readonly<Record<string, Kind>> = { M: 'mamba2', '*': 'attention', '-': 'nothing', E: 'nothing' };
const BY_WORD: Readonly<Record<string, Kind>> = {
  mamba: 'mamba2',
  linear_attention: 'mamba2',
  attention: 'attention',
  full_attention: 'attention',
  mlp: 'nothing',
  moe: 'nothing',
};

/**
 * One letter a layer in `hybrid_override_pattern`: `M` Mamba-2, `*` attention, `-` and `E` feed-forward, which keeps nothing and
 * gets no layer here; or one word a layer in `layers_block_type`. Layer ids are those of the model, so they have gaps.
 * @see huggingface/transformers configuration_nemotron_h.py, also for the second names of fields
 * @see NVIDIA/TensorRT-LLM mamba_cache_manager_v2.py: the inner width is heads times width of a head, whatever `expand` says
 */
export const nemotronH: Family = {
  name: 'nemotron-h',
  modelTypes: ['nemotron_h'],
  architectures: ['NemotronHForCausalLM'],
  read(model, bytes) {
    const isInWords = fieldOf(model, 'layers_block_type') !== undefined;
    const key = isInWords ? 'layers_block_type' : 'hybrid_override_pattern';
    const numLayers = readNumLayersOrLength(model, key);
    const kinds = isInWords ? readLayerKinds(model, key, numLayers, BY_WORD) : readPattern(model, key, numLayers);
    const rows = readKeyAndValue(model, bytes.kv, { headDimKeys: ['head_dim', 'attention_head_dim'] });
    const sizes = {
      numHeads: readSize(model, 'mamba_num_heads'),
      headDim: readSize(model, 'mamba_head_dim'),
      numGroups: readSize(model, presentKey(model, ['n_groups', 'mamba_n_groups'])),
      stateSize: readSize(model, 'ssm_state_size'),
      convWidth: readSize(model, presentKey(model, ['conv_kernel', 'mamba_d_conv'])),
    };
    checkGroups(model, 'mamba_num_heads', sizes);
    const parts = kinds.flatMap((kind, modelLayer): LayerPart[] => {
      if (kind === 'nothing') return [];
      return [kind === 'mamba2' ? mamba2Part(modelLayer, sizes, bytes) : fullAttentionPart(modelLayer, rows)];
    });
    return { numModelLayers: numLayers, parts, notes: [] };
  },
};

/** Newer files leave the number of layers out, as their list says it. */
function readNumLayersOrLength(model: ModelFields, listKey: string): number {
  const list = fieldOf(model, listKey);
  const length = typeof list === 'string' || Array.isArray(list) ? list.length : 0;
  const isSaid = fieldOf(model, 'num_hidden_layers') !== undefined || length === 0 || length > MAX_LAYERS;
  return isSaid ? readNumLayers(model) : length;
}

function readPattern(model: ModelFields, key: string, numLayers: number): readonly Kind[] {
  const value = fieldOf(model, key);
  const path = pathOf(model, key);
  const wanted = 'expected a string with one letter of M * - E for each layer';
  if (typeof value !== 'string') {
    if (value === undefined) model.faults.note('config-missing', path, model.fields[key], `is missing; ${wanted}.`);
    else model.faults.note('config-wrong-type', path, value, `${wanted}, got ${describe(value)}.`);
    return [];
  }
  if (value.length > numLayers || value.length < numLayers) {
    const message = `${wanted}: the model has ${numLayers} layers, the string ${value.length} letters.`;
    model.faults.note('preset-list-length', path, value.length, message);
    return [];
  }
  if (Number.isNaN(numLayers)) return [];
  const letters = [...value];
  const unknown = letters.findIndex((letter) => !Object.hasOwn(BY_LETTER, letter));
  if (unknown >= 0) {
    const message = `${wanted}, got ${describe(letters[unknown])}.`;
    model.faults.note('config-unknown-value', `${path}[${unknown}]`, letters[unknown], message);
    return [];
  }
  return letters.map((letter) => BY_LETTER[letter]);
}
