/*
 * Published `config.json` files, trimmed to the fields that shape a cache and a few that must not matter. Values are those of the
 * files; what a file leaves out is left out here.
 */

export const llama31_8b = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  hidden_size: 4096,
  intermediate_size: 14336,
  max_position_embeddings: 131072,
  num_attention_heads: 32,
  num_hidden_layers: 32,
  num_key_value_heads: 8,
  rope_theta: 500000.0,
  torch_dtype: 'bfloat16',
  vocab_size: 128256,
};

export const qwen3_8b = {
  architectures: ['Qwen3ForCausalLM'],
  model_type: 'qwen3',
  head_dim: 128,
  hidden_size: 4096,
  max_window_layers: 36,
  num_attention_heads: 32,
  num_hidden_layers: 36,
  num_key_value_heads: 8,
  sliding_window: null,
  use_sliding_window: false,
};

export const qwen3_30b_a3b = {
  architectures: ['Qwen3MoeForCausalLM'],
  model_type: 'qwen3_moe',
  head_dim: 128,
  hidden_size: 2048,
  max_window_layers: 48,
  num_attention_heads: 32,
  num_experts: 128,
  num_hidden_layers: 48,
  num_key_value_heads: 4,
  sliding_window: null,
  use_sliding_window: false,
};

export const qwen25_7b = {
  architectures: ['Qwen2ForCausalLM'],
  model_type: 'qwen2',
  hidden_size: 3584,
  max_window_layers: 28,
  num_attention_heads: 28,
  num_hidden_layers: 28,
  num_key_value_heads: 4,
  sliding_window: 131072,
  use_sliding_window: false,
};

export const mistral7b_v01 = {
  architectures: ['MistralForCausalLM'],
  model_type: 'mistral',
  hidden_size: 4096,
  num_attention_heads: 32,
  num_hidden_layers: 32,
  num_key_value_heads: 8,
  sliding_window: 4096,
};

export const mixtral_8x7b = {
  architectures: ['MixtralForCausalLM'],
  model_type: 'mixtral',
  hidden_size: 4096,
  num_attention_heads: 32,
  num_hidden_layers: 32,
  num_key_value_heads: 8,
  num_local_experts: 8,
  sliding_window: null,
};

export const phi3_mini_4k = {
  architectures: ['Phi3ForCausalLM'],
  model_type: 'phi3',
  hidden_size: 3072,
  num_attention_heads: 32,
  num_hidden_layers: 32,
  num_key_value_heads: 32,
  sliding_window: 2047,
};

export const gemma2_9b = {
  architectures: ['Gemma2ForCausalLM'],
  model_type: 'gemma2',
  head_dim: 256,
  hidden_size: 3584,
  num_attention_heads: 16,
  num_hidden_layers: 42,
  num_key_value_heads: 8,
  sliding_window: 4096,
};

/** Heads, width and pattern are those of the class, so the file leaves them out. */
export const gemma3_4b = {
  architectures: ['Gemma3ForConditionalGeneration'],
  model_type: 'gemma3',
  mm_tokens_per_image: 256,
  text_config: {
    hidden_size: 2560,
    intermediate_size: 10240,
    model_type: 'gemma3_text',
    num_hidden_layers: 34,
    rope_scaling: { factor: 8.0, rope_type: 'linear' },
    sliding_window: 1024,
  },
  vision_config: { hidden_size: 1152, model_type: 'siglip_vision_model', num_attention_heads: 16, num_hidden_layers: 27 },
};

export const gemma3_27b = {
  architectures: ['Gemma3ForConditionalGeneration'],
  model_type: 'gemma3',
  text_config: {
    head_dim: 128,
    hidden_size: 5376,
    intermediate_size: 21504,
    model_type: 'gemma3_text',
    num_attention_heads: 32,
    num_hidden_layers: 62,
    num_key_value_heads: 16,
    query_pre_attn_scalar: 168,
    sliding_window: 1024,
  },
};

export const gptOss20b = {
  architectures: ['GptOssForCausalLM'],
  model_type: 'gpt_oss',
  head_dim: 64,
  hidden_size: 2880,
  layer_types: Array.from({ length: 24 }, (_, layer) => (layer % 2 === 0 ? 'sliding_attention' : 'full_attention')),
  num_attention_heads: 64,
  num_hidden_layers: 24,
  num_key_value_heads: 8,
  num_local_experts: 32,
  sliding_window: 128,
};

export const jambaV01 = {
  architectures: ['JambaForCausalLM'],
  model_type: 'jamba',
  attn_layer_offset: 4,
  attn_layer_period: 8,
  hidden_size: 4096,
  mamba_d_conv: 4,
  mamba_d_state: 16,
  mamba_dt_rank: 256,
  mamba_expand: 2,
  num_attention_heads: 32,
  num_hidden_layers: 32,
  num_key_value_heads: 8,
  sliding_window: null,
};

export const nemotronH8b = {
  architectures: ['NemotronHForCausalLM'],
  model_type: 'nemotron_h',
  attention_head_dim: 128,
  conv_kernel: 4,
  expand: 2,
  hidden_size: 4096,
  hybrid_override_pattern: 'M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-',
  mamba_head_dim: 64,
  mamba_num_heads: 128,
  n_groups: 8,
  num_attention_heads: 32,
  num_hidden_layers: 52,
  num_key_value_heads: 8,
  sliding_window: null,
  ssm_state_size: 128,
};

const graniteLayers = Array.from({ length: 40 }, (_, layer) => (layer % 10 === 5 ? 'attention' : 'mamba'));

export const granite4hSmall = {
  architectures: ['GraniteMoeHybridForCausalLM'],
  model_type: 'granitemoehybrid',
  hidden_size: 4096,
  layer_types: graniteLayers,
  mamba_d_conv: 4,
  mamba_d_head: 64,
  mamba_d_state: 128,
  mamba_expand: 2,
  mamba_n_groups: 1,
  mamba_n_heads: 128,
  num_attention_heads: 32,
  num_hidden_layers: 40,
  num_key_value_heads: 8,
  position_embedding_type: 'nope',
};

export const granite4hTiny = {
  ...granite4hSmall,
  hidden_size: 1536,
  mamba_n_heads: 48,
  num_attention_heads: 12,
  num_key_value_heads: 4,
};

export const qwen3Next80b = {
  architectures: ['Qwen3NextForCausalLM'],
  model_type: 'qwen3_next',
  full_attention_interval: 4,
  head_dim: 256,
  hidden_size: 2048,
  linear_conv_kernel_dim: 4,
  linear_key_head_dim: 128,
  linear_num_key_heads: 16,
  linear_num_value_heads: 32,
  linear_value_head_dim: 128,
  num_attention_heads: 16,
  num_experts: 512,
  num_hidden_layers: 48,
  num_key_value_heads: 2,
};

export const falconH1_7b = {
  architectures: ['FalconH1ForCausalLM'],
  model_type: 'falcon_h1',
  attn_layer_indices: null,
  head_dim: 128,
  hidden_size: 3072,
  mamba_d_conv: 4,
  mamba_d_head: 128,
  mamba_d_ssm: 3072,
  mamba_d_state: 256,
  mamba_expand: 2,
  mamba_n_groups: 1,
  mamba_n_heads: 24,
  num_attention_heads: 12,
  num_hidden_layers: 44,
  num_key_value_heads: 2,
};

export const falconH1_34b = {
  ...falconH1_7b,
  hidden_size: 5120,
  mamba_d_ssm: 4096,
  mamba_n_groups: 2,
  mamba_n_heads: 32,
  num_attention_heads: 20,
  num_hidden_layers: 72,
  num_key_value_heads: 4,
};

export const mambaCodestral7b = {
  architectures: ['Mamba2ForCausalLM'],
  model_type: 'mamba2',
  chunk_size: 256,
  conv_kernel: 4,
  expand: 2,
  head_dim: 64,
  hidden_size: 4096,
  n_groups: 8,
  num_heads: 128,
  num_hidden_layers: 64,
  state_size: 128,
};

export const mamba2_2_7b = {
  ...mambaCodestral7b,
  hidden_size: 2560,
  n_groups: 1,
  num_heads: 80,
};

export const deepseekV3 = {
  architectures: ['DeepseekV3ForCausalLM'],
  model_type: 'deepseek_v3',
  hidden_size: 7168,
  kv_lora_rank: 512,
  n_routed_experts: 256,
  num_attention_heads: 128,
  num_hidden_layers: 61,
  num_key_value_heads: 128,
  num_nextn_predict_layers: 1,
  q_lora_rank: 1536,
  qk_nope_head_dim: 128,
  qk_rope_head_dim: 64,
  v_head_dim: 128,
};

export const deepseekV32 = {
  ...deepseekV3,
  architectures: ['DeepseekV32ForCausalLM'],
  model_type: 'deepseek_v32',
  index_head_dim: 128,
  index_n_heads: 64,
  index_topk: 2048,
};

/** All of them, by name. */
export const modelConfigs: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'Llama-3.1-8B': llama31_8b,
  'Qwen3-8B': qwen3_8b,
  'Qwen3-30B-A3B': qwen3_30b_a3b,
  'Qwen2.5-7B': qwen25_7b,
  'Mistral-7B-v0.1': mistral7b_v01,
  'Mixtral-8x7B-v0.1': mixtral_8x7b,
  'Phi-3-mini-4k': phi3_mini_4k,
  'Gemma-2-9b': gemma2_9b,
  'Gemma-3-4b': gemma3_4b,
  'Gemma-3-27b': gemma3_27b,
  'gpt-oss-20b': gptOss20b,
  'Jamba-v0.1': jambaV01,
  'Nemotron-H-8B': nemotronH8b,
  'Granite-4.0-H-Small': granite4hSmall,
  'Granite-4.0-H-Tiny': granite4hTiny,
  'Qwen3-Next-80B-A3B': qwen3Next80b,
  'Falcon-H1-7B': falconH1_7b,
  'Falcon-H1-34B': falconH1_34b,
  'Mamba2-2.7b': mamba2_2_7b,
  'Mamba-Codestral-7B-v0.1': mambaCodestral7b,
  'DeepSeek-V3': deepseekV3,
  'DeepSeek-V3.2': deepseekV32,
};
