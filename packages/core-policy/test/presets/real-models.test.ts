import { describe, expect, test } from 'vitest';
import {
  defineCacheConfig,
  type LayerConfig,
  type LifecycleId,
  LifecycleRegistry,
  lifecycleKey,
  type ModelPreset,
  type PresetOptions,
  presetLayers,
} from '../../src/index.ts';
import * as models from './model-configs.ts';

/** Everything here is computed for blocks of 32 tokens, 2-byte keys, values and convolution inputs, and 4-byte states. */
const TOKENS_PER_BLOCK = 32;

const presetOf = (modelConfig: unknown, options: Partial<PresetOptions> = {}) =>
  presetLayers(modelConfig, { tokensPerBlock: TOKENS_PER_BLOCK, ...options });

const registryOf = ({ layers, tokensPerBlock }: ModelPreset) =>
  LifecycleRegistry.fromConfig(defineCacheConfig({ tokensPerBlock, layers, tiers: [{ tier: 'device', quota: 1 << 30 }] }));

/** Each group as its meaning, its number of layers and its roles. */
const groupsOf = (preset: ModelPreset) => {
  const registry = registryOf(preset);
  return registry.bufferGrouping.map((buffers, id) => [
    lifecycleKey(registry.get(id as LifecycleId)),
    new Set(buffers.map(({ layerId }) => layerId)).size,
    [...new Set(buffers.map(({ role }) => role))].join(' '),
  ]);
};

const layerOf = (preset: ModelPreset, layerId: number) => preset.layers.find((layer) => layer.layerId === layerId) as LayerConfig;

const sizesOf = (preset: ModelPreset, layerId: number) =>
  Object.fromEntries(layerOf(preset, layerId).buffers.map(({ role, size }) => [role, size]));

describe('full attention', () => {
  test('of Llama-3.1-8B takes 128 KiB a token', () => {
    const preset = presetOf(models.llama31_8b);
    // 8 heads × (4096 / 32 = 128) values × 2 bytes = 2,048 bytes a token in each buffer; × 32 tokens = 65,536.
    expect(layerOf(preset, 31)).toEqual({
      type: 'attention',
      layerId: 31,
      buffers: [
        { role: 'key', size: 65_536 },
        { role: 'value', size: 65_536 },
      ],
    });
    // 32 layers × 2 × 2,048
    expect(preset.bytesPerToken).toEqual({ required: 131_072, optional: 0, private: 0 });
    expect(groupsOf(preset)).toEqual([['attention required full 0', 32, 'key value']]);
    expect(preset).toMatchObject({ family: 'llama', variant: 'whole', tokensPerBlock: 32, savings: [], notes: [] });
  });

  test('of Qwen3 has a width of its own, and experts do not matter', () => {
    // 36 layers × 2 × 8 × 128 × 2
    expect(presetOf(models.qwen3_8b).bytesPerToken.required).toBe(147_456);
    // 48 layers × 2 × 4 × 128 × 2; the hidden size, 2048 / 32 = 64, would give half
    expect(presetOf(models.qwen3_30b_a3b).bytesPerToken.required).toBe(98_304);
    // 32 layers × 2 × 8 × 128 × 2
    expect(presetOf(models.mixtral_8x7b).bytesPerToken.required).toBe(131_072);
  });

  test('of Qwen2.5-7B has no window, as the one in the file is switched off', () => {
    const preset = presetOf(models.qwen25_7b);
    expect(groupsOf(preset)).toEqual([['attention required full 0', 28, 'key value']]);
    // 28 layers × 2 × 4 × 128 × 2
    expect(preset.bytesPerToken.required).toBe(57_344);
  });

  test('is all required in a split variant too, which says so', () => {
    const split = presetOf(models.llama31_8b, { variant: 'split' });
    expect(split.layers).toEqual(presetOf(models.llama31_8b).layers);
    expect(split.savings).toEqual([]);
    expect(split.notes).toEqual([expect.stringMatching(/^Nothing is split: full attention/)]);
  });
});

describe('a window in every layer', () => {
  test('of Mistral-7B-v0.1 is 4096 tokens, and makes one group', () => {
    const preset = presetOf(models.mistral7b_v01);
    expect(groupsOf(preset)).toEqual([['attention required 4096 0', 32, 'key value']]);
    // 32 layers × 2 × 8 × 128 × 2
    expect(preset.bytesPerToken.required).toBe(131_072);
  });

  test('of Phi-3-mini-4k is 2047 tokens, with a head of its own for each of 32 queries', () => {
    const preset = presetOf(models.phi3_mini_4k);
    expect(groupsOf(preset)).toEqual([['attention required 2047 0', 32, 'key value']]);
    // 32 layers × 2 × 32 × (3072 / 32 = 96) × 2
    expect(preset.bytesPerToken.required).toBe(393_216);
  });

  test('is not split, as nothing else would hold a match up', () => {
    const split = presetOf(models.mistral7b_v01, { variant: 'split' });
    expect(groupsOf(split)).toEqual([['attention required 4096 0', 32, 'key value']]);
    expect(split.savings).toEqual([]);
    expect(split.notes).toEqual([expect.stringMatching(/every layer has a window/)]);
  });
});

describe('windows beside full attention', () => {
  test('of Gemma-3-4b are 29 of 34 layers, from a file that leaves heads and pattern out', () => {
    const preset = presetOf(models.gemma3_4b);
    expect(groupsOf(preset)).toEqual([
      ['attention required 1024 0', 29, 'key value'],
      ['attention required full 0', 5, 'key value'],
    ]);
    const full = preset.layers.filter((layer) => layer.type === 'attention' && layer.slidingWindowSize === undefined);
    expect(full.map(({ layerId }) => layerId)).toEqual([5, 11, 17, 23, 29]);
    // 4 heads × 256 values × 2 bytes × 32 tokens
    expect(sizesOf(preset, 0)).toEqual({ key: 65_536, value: 65_536 });
    // 34 layers × 2 × 2,048
    expect(preset.bytesPerToken.required).toBe(139_264);
    expect(preset.notes).toEqual([expect.stringMatching(/^Read from text_config/)]);
  });

  test('of Gemma-3-27b are 52 of 62 layers', () => {
    const preset = presetOf(models.gemma3_27b);
    expect(groupsOf(preset).map(([meaning, numLayers]) => [meaning, numLayers])).toEqual([
      ['attention required 1024 0', 52],
      ['attention required full 0', 10],
    ]);
    // 62 layers × 2 × 16 × 128 × 2
    expect(preset.bytesPerToken.required).toBe(507_904);
  });

  test('of Gemma-2-9b and gpt-oss-20b are every other layer, the first one included', () => {
    expect(groupsOf(presetOf(models.gemma2_9b))).toEqual([
      ['attention required 4096 0', 21, 'key value'],
      ['attention required full 0', 21, 'key value'],
    ]);
    const gptOss = presetOf(models.gptOss20b);
    expect(groupsOf(gptOss)).toEqual([
      ['attention required 128 0', 12, 'key value'],
      ['attention required full 0', 12, 'key value'],
    ]);
    // 24 layers × 2 × 8 × 64 × 2
    expect(gptOss.bytesPerToken.required).toBe(49_152);
    expect(presetOf({ ...models.gptOss20b, layer_types: undefined }).layers).toEqual(gptOss.layers);
  });

  test('of gpt-oss keep no sink tokens, as its sinks are weights', () => {
    const preset = presetOf(models.gptOss20b);
    expect(preset.layers.some((layer) => 'numSinkTokens' in layer)).toBe(false);
    expect(preset.notes).toEqual([expect.stringMatching(/sinks are weights/)]);
  });

  test.each([
    // windowed layers × 2 buffers × bytes; layers × (window - 1) + 31 and (window - 1) + 31 tokens
    ['Gemma-3-4b', models.gemma3_4b, 29, 29 * 2 * 2048, 5 * 2 * 2048, 29 * 1023 + 31, 1023 + 31],
    ['Gemma-3-27b', models.gemma3_27b, 52, 52 * 2 * 4096, 10 * 2 * 4096, 52 * 1023 + 31, 1023 + 31],
    ['Gemma-2-9b', models.gemma2_9b, 21, 21 * 2 * 4096, 21 * 2 * 4096, 21 * 4095 + 31, 4095 + 31],
    ['gpt-oss-20b', models.gptOss20b, 12, 12 * 2 * 1024, 12 * 2 * 1024, 12 * 127 + 31, 127 + 31],
  ])('of %s are optional in a split variant', (_, modelConfig, numLayers, optional, required, recomputed, rewritten) => {
    const split = presetOf(modelConfig, { variant: 'split' });
    expect(split.bytesPerToken).toEqual({ required, optional, private: 0 });
    expect(groupsOf(split).map(([meaning]) => meaning)).toEqual([
      expect.stringMatching(/^attention optional \d+ 0$/),
      'attention required full 0',
    ]);
    expect(split.savings).toEqual([
      {
        buffers: 'windowed-attention',
        policy: 'optional',
        layerIds: expect.objectContaining({ length: numLayers }),
        roles: ['key', 'value'],
        bytesPerToken: optional,
        bytesPerSnapshot: 0,
        rewrittenTokens: rewritten,
        recomputedTokens: recomputed,
        sentence: expect.stringContaining(`${optional} bytes a token`),
      },
    ]);
    expect(split.savings[0].sentence).toContain(`last ${recomputed} tokens`);
    expect(split.notes.at(-1)).toMatch(/where a match ends with a block/);
  });
});

describe('recurrent state beside attention', () => {
  test('of Jamba-v0.1 is Mamba-1 in 28 of 32 layers', () => {
    const preset = presetOf(models.jambaV01);
    expect(groupsOf(preset)).toEqual([
      ['ssm required', 28, 'ssm_state conv_state'],
      ['attention required full 0', 4, 'key value'],
    ]);
    expect([4, 12, 20, 28].map((layer) => layerOf(preset, layer).type)).toEqual(Array(4).fill('attention'));
    // 2 × 4096 = 8,192 channels: × 16 × 4 bytes; 3 rows × 8,192 × 2 bytes
    expect(sizesOf(preset, 0)).toEqual({ ssm_state: 524_288, conv_state: 49_152 });
    expect(preset.bytesPerSequence.required).toBe(28 * (524_288 + 49_152));
    // 4 layers × 2 × 8 × 128 × 2
    expect(preset.bytesPerToken.required).toBe(16_384);
  });

  test('of Jamba gets no ring, in any variant', () => {
    const split = presetOf(models.jambaV01, { variant: 'split', replayTokens: 16 });
    expect(split.layers).toEqual(presetOf(models.jambaV01).layers);
    expect(split.savings).toEqual([]);
    expect(split.notes).toEqual([expect.stringMatching(/^Convolution inputs/), expect.stringMatching(/^Mamba-1 has no/)]);
  });

  test('of Nemotron-H-8B is Mamba-2 in 24 of 52 layers, and feed-forward layers get none', () => {
    const preset = presetOf(models.nemotronH8b);
    expect(preset.layers).toHaveLength(28);
    expect(groupsOf(preset)).toEqual([
      ['ssm required', 24, 'ssm_state conv_state'],
      ['attention required full 0', 4, 'key value'],
    ]);
    expect(preset.layers.filter(({ type }) => type === 'attention').map(({ layerId }) => layerId)).toEqual([7, 18, 29, 40]);
    // 128 heads × 64 × 128 × 4 bytes; 3 rows × (128 × 64 + 2 × 8 × 128 = 10,240) × 2 bytes
    expect(sizesOf(preset, 0)).toEqual({ ssm_state: 4_194_304, conv_state: 61_440 });
    expect(preset.bytesPerSequence.required).toBe(24 * 4_255_744);
  });

  test('of Nemotron-H can be told in words, and without a number of layers', () => {
    const words = { M: 'mamba', '*': 'attention', '-': 'mlp' };
    const inWords = {
      ...models.nemotronH8b,
      num_hidden_layers: undefined,
      hybrid_override_pattern: undefined,
      layers_block_type: [...models.nemotronH8b.hybrid_override_pattern].map((letter) => words[letter as keyof typeof words]),
    };
    expect(presetOf(inWords).layers).toEqual(presetOf(models.nemotronH8b).layers);
    expect(presetOf({ ...models.nemotronH8b, num_hidden_layers: null }).layers).toEqual(presetOf(models.nemotronH8b).layers);
  });

  test('of Granite 4.0 is Mamba-2 in 36 of 40 layers', () => {
    const small = presetOf(models.granite4hSmall);
    expect(groupsOf(small)).toEqual([
      ['ssm required', 36, 'ssm_state conv_state'],
      ['attention required full 0', 4, 'key value'],
    ]);
    expect(small.layers.filter(({ type }) => type === 'attention').map(({ layerId }) => layerId)).toEqual([5, 15, 25, 35]);
    // 128 × 64 × 128 × 4; 3 × (128 × 64 + 2 × 1 × 128 = 8,448) × 2
    expect(sizesOf(small, 0)).toEqual({ ssm_state: 4_194_304, conv_state: 50_688 });
    const tiny = presetOf(models.granite4hTiny);
    // 48 × 64 × 128 × 4; 3 × (48 × 64 + 256 = 3,328) × 2
    expect(sizesOf(tiny, 0)).toEqual({ ssm_state: 1_572_864, conv_state: 19_968 });
    // 4 layers × 2 × 4 × (1536 / 12 = 128) × 2
    expect(tiny.bytesPerToken.required).toBe(8_192);
    expect(presetOf({ ...models.granite4hTiny, mamba_d_head: 'auto' }).layers).toEqual(tiny.layers);
  });

  test('of Granite is asked for only where there is some', () => {
    const attentionOnly = {
      model_type: 'granitemoehybrid',
      hidden_size: 2560,
      num_attention_heads: 40,
      num_key_value_heads: 8,
      num_hidden_layers: 40,
      layer_types: Array(40).fill('attention'),
    };
    expect(groupsOf(presetOf(attentionOnly))).toEqual([['attention required full 0', 40, 'key value']]);
  });

  test('of Qwen3-Next-80B-A3B is a gated delta net in 36 of 48 layers', () => {
    const preset = presetOf(models.qwen3Next80b);
    expect(groupsOf(preset)).toEqual([
      ['ssm required', 36, 'ssm_state conv_state'],
      ['attention required full 0', 12, 'key value'],
    ]);
    expect(layerOf(preset, 3).type).toBe('attention');
    // 32 heads × 128 × 128 × 4; 3 × (2 × 16 × 128 + 32 × 128 = 8,192) × 2
    expect(sizesOf(preset, 0)).toEqual({ ssm_state: 2_097_152, conv_state: 49_152 });
    // 12 layers × 2 × 2 × 256 × 2
    expect(preset.bytesPerToken.required).toBe(24_576);
    const types = Array.from({ length: 48 }, (_, layer) => (layer % 4 === 3 ? 'full_attention' : 'linear_attention'));
    expect(presetOf({ ...models.qwen3Next80b, full_attention_interval: undefined, layer_types: types }).layers).toEqual(
      preset.layers,
    );
  });

  test('of Falcon-H1 lies beside attention in every layer, in a layer with an id of its own', () => {
    const preset = presetOf(models.falconH1_7b);
    expect(groupsOf(preset)).toEqual([
      ['attention required full 0', 44, 'key value'],
      ['ssm required', 44, 'ssm_state conv_state'],
    ]);
    expect(preset.origins.slice(0, 4)).toEqual([
      { layerId: 0, modelLayer: 0, part: 'attention' },
      { layerId: 44, modelLayer: 0, part: 'mamba2' },
      { layerId: 1, modelLayer: 1, part: 'attention' },
      { layerId: 45, modelLayer: 1, part: 'mamba2' },
    ]);
    // 24 × 128 × 256 × 4; 3 × (3072 + 2 × 1 × 256 = 3,584) × 2
    expect(sizesOf(preset, 44)).toEqual({ ssm_state: 3_145_728, conv_state: 21_504 });
    // 44 layers × 2 × 2 × 128 × 2: 44 KiB
    expect(preset.bytesPerToken.required).toBe(45_056);
  });

  test('of Falcon-H1-34B has two groups of heads', () => {
    const preset = presetOf(models.falconH1_34b);
    // 32 × 128 × 256 × 4; 3 × (4096 + 2 × 2 × 256 = 5,120) × 2
    expect(sizesOf(preset, 72 + 71)).toEqual({ ssm_state: 4_194_304, conv_state: 30_720 });
    // 72 layers × 2 × 4 × 128 × 2: 144 KiB
    expect(preset.bytesPerToken.required).toBe(147_456);
    const { mamba_d_ssm: _, ...byExpansion } = { ...models.falconH1_34b, mamba_n_heads: 80, mamba_d_head: 'auto' };
    // without mamba_d_ssm the inner width is 2 × 5120 = 10,240, and each of 80 heads 128 wide
    expect(sizesOf(presetOf(byExpansion), 72).ssm_state).toBe(80 * 128 * 256 * 4);
  });
});

describe('recurrent state alone', () => {
  test('of Mamba-2 models makes one group', () => {
    const preset = presetOf(models.mamba2_2_7b);
    expect(groupsOf(preset)).toEqual([['ssm required', 64, 'ssm_state conv_state']]);
    // 80 × 64 × 128 × 4; 3 × (5120 + 2 × 128 = 5,376) × 2
    expect(sizesOf(preset, 63)).toEqual({ ssm_state: 2_621_440, conv_state: 32_256 });
    expect(preset.bytesPerToken).toEqual({ required: 0, optional: 0, private: 0 });
    // 128 × 64 × 128 × 4; 3 × (8192 + 2 × 8 × 128 = 10,240) × 2
    expect(sizesOf(presetOf(models.mambaCodestral7b), 0)).toEqual({ ssm_state: 4_194_304, conv_state: 61_440 });
  });

  test('of a convolution with one tap has no inputs to keep', () => {
    const preset = presetOf({ ...models.mamba2_2_7b, conv_kernel: 1 });
    expect(sizesOf(preset, 0).conv_state).toBe(0);
    expect(groupsOf(preset)).toEqual([['ssm required', 64, 'ssm_state']]);
  });
});

describe('a replay ring', () => {
  test.each([
    // Bytes of one layer: 16 tokens × (inner × 2 + heads × 4 + groups × state × 2)
    ['Nemotron-H-8B', models.nemotronH8b, 24, 16 * (8192 * 2 + 128 * 4 + 8 * 128 * 2)],
    ['Granite-4.0-H-Small', models.granite4hSmall, 36, 16 * (8192 * 2 + 128 * 4 + 128 * 2)],
    ['Granite-4.0-H-Tiny', models.granite4hTiny, 36, 16 * (3072 * 2 + 48 * 4 + 128 * 2)],
    ['Falcon-H1-7B', models.falconH1_7b, 44, 16 * (3072 * 2 + 24 * 4 + 256 * 2)],
    ['Falcon-H1-34B', models.falconH1_34b, 72, 16 * (4096 * 2 + 32 * 4 + 2 * 256 * 2)],
    ['Mamba2-2.7b', models.mamba2_2_7b, 64, 16 * (5120 * 2 + 80 * 4 + 128 * 2)],
    ['Mamba-Codestral-7B-v0.1', models.mambaCodestral7b, 64, 16 * (8192 * 2 + 128 * 4 + 8 * 128 * 2)],
    // 16 tokens × 32 heads × (128 + 128 + 1) × 4
    ['Qwen3-Next-80B-A3B', models.qwen3Next80b, 36, 16 * 32 * 257 * 4],
  ])('of %s is private in a split variant, and no snapshot carries it', (_, modelConfig, numLayers, layerBytes) => {
    const whole = presetOf(modelConfig);
    const split = presetOf(modelConfig, { variant: 'split' });
    expect(split.bytesPerSequence).toEqual({ ...whole.bytesPerSequence, private: numLayers * layerBytes });
    expect(split.bytesPerToken).toEqual(whole.bytesPerToken);
    expect(groupsOf(split).filter(([meaning]) => meaning === 'ssm private')).toEqual([
      ['ssm private', numLayers, expect.stringMatching(/^replay_x replay_dt replay_b$|^replay_delta$/)],
    ]);
    expect(split.savings).toMatchObject([
      {
        buffers: 'replay-ring',
        policy: 'private',
        bytesPerToken: 0,
        bytesPerSnapshot: numLayers * layerBytes,
        rewrittenTokens: 0,
        recomputedTokens: 0,
        sentence: expect.stringContaining(`${numLayers * layerBytes} bytes less`),
      },
    ]);
    expect(split.savings[0].layerIds).toHaveLength(numLayers);
    expect(split.notes).toContainEqual(expect.stringMatching(/^Convolution inputs stay required/));
  });

  test('is part of every snapshot in a whole variant that has one', () => {
    const whole = presetOf(models.nemotronH8b, { replayTokens: 16 });
    const split = presetOf(models.nemotronH8b, { variant: 'split' });
    expect(groupsOf(whole)[0]).toEqual(['ssm required', 24, 'ssm_state conv_state replay_x replay_dt replay_b']);
    expect(whole.bytesPerSequence.required).toBe(split.bytesPerSequence.required + split.savings[0].bytesPerSnapshot);
    expect(whole.savings).toEqual([]);
  });

  test('can be longer, or left out', () => {
    const longer = presetOf(models.nemotronH8b, { variant: 'split', replayTokens: 64 });
    expect(longer.bytesPerSequence.private).toBe(4 * presetOf(models.nemotronH8b, { variant: 'split' }).bytesPerSequence.private);
    const none = presetOf(models.nemotronH8b, { variant: 'split', replayTokens: 0 });
    expect(none.layers).toEqual(presetOf(models.nemotronH8b).layers);
    expect(none.savings).toEqual([]);
  });
});

describe('a latent', () => {
  test('of DeepSeek-V3 is one buffer of 576 values a layer, for all 128 heads', () => {
    const preset = presetOf(models.deepseekV3);
    expect(groupsOf(preset)).toEqual([['attention required full 0', 61, 'latent']]);
    // (512 + 64) × 2 bytes × 32 tokens
    expect(sizesOf(preset, 0)).toEqual({ latent: 36_864 });
    // 61 × 576 × 2
    expect(preset.bytesPerToken.required).toBe(70_272);
    expect(preset.notes).toEqual([expect.stringMatching(/num_nextn_predict_layers: 1/)]);
  });

  test('of DeepSeek-V3.2 has index keys beside it, in layers and in a group of their own', () => {
    const preset = presetOf(models.deepseekV32);
    expect(groupsOf(preset)).toEqual([
      ['attention required full 0', 61, 'latent'],
      ['attention required full 0 indexer', 61, 'index_key'],
    ]);
    expect(preset.origins.slice(0, 2)).toEqual([
      { layerId: 0, modelLayer: 0, part: 'attention' },
      { layerId: 61, modelLayer: 0, part: 'indexer' },
    ]);
    // (128 values × 1 byte + one scale of 4 bytes) × 32 tokens
    expect(sizesOf(preset, 61)).toEqual({ index_key: 4_224 });
    // 61 × (1,152 + 132)
    expect(preset.bytesPerToken.required).toBe(78_324);
  });

  test('and its index keys are all required in a split variant, which says why', () => {
    const split = presetOf(models.deepseekV32, { variant: 'split' });
    expect(split.layers).toEqual(presetOf(models.deepseekV32).layers);
    expect(split.savings).toEqual([]);
    expect(split.notes).toContainEqual(expect.stringMatching(/^Index keys are required in both variants/));
  });
});

describe('every published model', () => {
  const rows = Object.entries(models.modelConfigs).flatMap(([name, modelConfig]) =>
    (['whole', 'split'] as const).map((variant) => [name, variant, modelConfig] as const),
  );

  test.each(rows)('%s, %s, goes through defineCacheConfig, and its sums are those of its layers', (_, variant, modelConfig) => {
    const preset = presetOf(modelConfig, { variant });
    const registry = registryOf(preset);
    expect(registry.bufferGrouping.flat()).toHaveLength(preset.layers.flatMap((layer) => layer.buffers).length);
    expect(preset.origins.map(({ layerId }) => layerId)).toEqual(preset.layers.map(({ layerId }) => layerId));
    const sum = (type: LayerConfig['type']) =>
      preset.layers
        .filter((layer) => layer.type === type)
        .flatMap((layer) => layer.buffers)
        .reduce((bytes, { size }) => bytes + size, 0);
    const total = (bytes: ModelPreset['bytesPerToken']) => bytes.required + bytes.optional + bytes.private;
    expect(total(preset.bytesPerToken) * TOKENS_PER_BLOCK).toBe(sum('attention'));
    expect(total(preset.bytesPerSequence)).toBe(sum('ssm'));
  });

  test.each(rows)('%s, %s, is the same for each size of a block, up to the size of pages', (_, variant, modelConfig) => {
    const small = presetOf(modelConfig, { variant, tokensPerBlock: 1 });
    const large = presetOf(modelConfig, { variant, tokensPerBlock: 256 });
    expect(large.bytesPerToken).toEqual(small.bytesPerToken);
    expect(large.bytesPerSequence).toEqual(small.bytesPerSequence);
    expect(groupsOf(large)).toEqual(groupsOf(small));
  });

  test.each(Object.entries(models.modelConfigs))(
    '%s saves in a split variant only what it does not require',
    (_, modelConfig) => {
      const { savings, bytesPerToken, bytesPerSequence } = presetOf(modelConfig, { variant: 'split' });
      const sum = (pick: (saving: (typeof savings)[number]) => number) =>
        savings.reduce((bytes, saving) => bytes + pick(saving), 0);
      expect(sum((saving) => saving.bytesPerToken)).toBe(bytesPerToken.optional + bytesPerToken.private);
      expect(sum((saving) => saving.bytesPerSnapshot)).toBe(bytesPerSequence.optional + bytesPerSequence.private);
    },
  );

  test.each(Object.entries(models.modelConfigs))('%s is known by its architecture where model_type is not', (_, modelConfig) => {
    const renamed = (config: Readonly<Record<string, unknown>>) => ({ ...config, model_type: 'kimi_k2' });
    const text = modelConfig.text_config as Record<string, unknown> | undefined;
    const unknown = text
      ? { ...modelConfig, text_config: { ...renamed(text), architectures: ['Gemma3ForCausalLM'] } }
      : renamed(modelConfig);
    expect(presetOf(unknown).layers).toEqual(presetOf(modelConfig).layers);
  });
});

describe('the engine decides how values are stored', () => {
  test('keys and values', () => {
    const bytes = (kvDtype: PresetOptions['kvDtype']) => presetOf(models.llama31_8b, { kvDtype }).bytesPerToken.required;
    expect([bytes('f32'), bytes('f16'), bytes('bf16'), bytes('f8'), bytes('i8')]).toEqual([
      262_144, 131_072, 131_072, 65_536, 65_536,
    ]);
  });

  test('states, and convolution inputs, which follow keys unless told otherwise', () => {
    const sizes = (options: Partial<PresetOptions>) => sizesOf(presetOf(models.nemotronH8b, options), 0);
    expect(sizes({ kvDtype: 'f32' })).toEqual({ ssm_state: 4_194_304, conv_state: 122_880 });
    expect(sizes({ kvDtype: 'f32', convDtype: 'bf16' })).toEqual({ ssm_state: 4_194_304, conv_state: 61_440 });
    expect(sizes({ stateDtype: 'bf16' })).toEqual({ ssm_state: 2_097_152, conv_state: 61_440 });
  });

  test('index keys, with scales only in 8 bits', () => {
    const size = (indexKeyDtype: PresetOptions['indexKeyDtype'], index_head_dim = 128) =>
      sizesOf(presetOf({ ...models.deepseekV32, index_head_dim }, { indexKeyDtype, tokensPerBlock: 1 }), 61).index_key;
    expect([size('f8'), size('f16'), size('f32')]).toEqual([132, 256, 512]);
    // a scale for each 128 values that have begun
    expect([size('f8', 64), size('f8', 129), size('f8', 256)]).toEqual([68, 137, 264]);
  });
});

test('the layers of a preset, and everything beside them, cannot be changed', () => {
  const preset = presetOf(models.gemma3_4b, { variant: 'split' });
  const isFrozen = (value: unknown): boolean =>
    typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(isFrozen));
  expect(isFrozen(preset)).toBe(true);
});
