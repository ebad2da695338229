import { type ModelPreset, type PresetOptions, presetLayers } from '@bufferwise/core-policy';
import type { AttentionDescription } from './attention.ts';
import type { Mamba2Description } from './mamba2.ts';
import type { ModelArchitecture, ModelDescription } from './model-description.ts';

/**
 * What a described model remembers, as the cache manager wants it told: by the preset of its family. `layerId` is the position
 * in `layers`. This engine keeps f32 throughout; `options` may say otherwise for another.
 *
 * @throws {PresetError} on options that fit no preset
 */
export function describedCacheLayers(model: ModelDescription, options: PresetOptions): ModelPreset {
  return presetLayers(presetConfig(model), { kvDtype: 'f32', ...options });
}

/** The families whose caches have the shape of each architecture's. */
const MODEL_TYPES: Readonly<Record<ModelArchitecture, string>> = {
  llama: 'llama',
  // OLMo 2 has no preset of its own. It remembers what a Mistral with its layer_types remembers.
  olmo2: 'mistral',
  gemma3: 'gemma3_text',
  mamba2: 'mamba2',
  granitehybrid: 'granitemoehybrid',
};

/** The fields of a Hugging Face `config.json` that say what a model remembers. */
function presetConfig(model: ModelDescription): Readonly<Record<string, unknown>> {
  const mixers = model.layers.map(({ mixer }) => mixer);
  const attention = mixers.find((mixer): mixer is AttentionDescription => mixer.kind === 'attention');
  const mamba2 = mixers.find((mixer): mixer is Mamba2Description => mixer.kind === 'mamba2');
  return {
    model_type: MODEL_TYPES[model.architecture],
    num_hidden_layers: mixers.length,
    hidden_size: model.width,
    ...(attention && attentionFields(attention)),
    ...(model.architecture === 'mamba2' && mamba2 && mamba2Fields(mamba2, model.width)),
    ...(model.architecture === 'granitehybrid' && {
      ...(mamba2 && prefixedMamba2Fields(mamba2)),
      layer_types: mixers.map(({ kind }) => (kind === 'mamba2' ? 'mamba' : 'attention')),
    }),
    ...((model.architecture === 'olmo2' || model.architecture === 'gemma3') && windowFields(mixers)),
  };
}

function attentionFields({ numHeads, numKvHeads, headDim }: AttentionDescription): object {
  return { num_attention_heads: numHeads, num_key_value_heads: numKvHeads, head_dim: headDim };
}

function windowFields(mixers: readonly (AttentionDescription | Mamba2Description)[]): object {
  const windows = mixers.map((mixer) => (mixer.kind === 'attention' ? mixer.windowSize : undefined));
  return {
    layer_types: windows.map((windowSize) => (windowSize === undefined ? 'full_attention' : 'sliding_attention')),
    sliding_window: windows.find((windowSize) => windowSize !== undefined),
  };
}

function mamba2Fields({ inner, numHeads, headDim, numGroups, stateSize, convWidth }: Mamba2Description, width: number): object {
  return {
    expand: inner / width,
    num_heads: numHeads,
    head_dim: headDim,
    n_groups: numGroups,
    state_size: stateSize,
    conv_kernel: convWidth,
  };
}

function prefixedMamba2Fields({ inner, numHeads, headDim, numGroups, stateSize, convWidth }: Mamba2Description): object {
  return {
    mamba_d_ssm: inner,
    mamba_n_heads: numHeads,
    mamba_d_head: headDim,
    mamba_n_groups: numGroups,
    mamba_d_state: stateSize,
    mamba_d_conv: convWidth,
  };
}
