import { describe, expect, test } from 'vitest';
import * as models from '../../test/presets/model-configs.ts';
import { BufferwiseError } from '../errors/bufferwise-error.ts';
import { PresetError, type PresetFaultCode } from '../errors/preset-error.ts';
import { presetLayers } from './preset-layers.ts';
import type { PresetOptions } from './preset-options.ts';

function faultsOf(modelConfig: unknown, options: unknown = { tokensPerBlock: 32 }): PresetError['faults'] {
  try {
    presetLayers(modelConfig, options as PresetOptions);
  } catch (error) {
    expect(error).toBeInstanceOf(PresetError);
    return (error as PresetError).faults;
  }
  return [];
}

type Config = Readonly<Record<string, unknown>>;
type Row = [path: string, value: unknown, code: PresetFaultCode];

/** A size that must be there. */
const badSizes = (...paths: string[]): Row[] =>
  paths.flatMap((path): Row[] => [
    [path, undefined, 'config-missing'],
    [path, null, 'config-missing'],
    ...badNumbers(path),
    [path, 2 ** 20 + 1, 'config-out-of-range'],
  ]);

const badNumbers = (path: string): Row[] => [
  [path, '8', 'config-wrong-type'],
  [path, [8], 'config-wrong-type'],
  [path, true, 'config-wrong-type'],
  [path, 8n, 'config-wrong-type'],
  [path, 8.5, 'config-not-whole'],
  [path, Number.NaN, 'config-not-whole'],
  [path, Number.POSITIVE_INFINITY, 'config-not-whole'],
  [path, -1, 'config-out-of-range'],
  [path, Number.MAX_SAFE_INTEGER + 1, 'config-out-of-range'],
];

const badWindow: Row[] = [...badNumbers('sliding_window'), ['sliding_window', 0, 'config-out-of-range']];

const badLayerCount: Row[] = [
  ['num_hidden_layers', undefined, 'config-missing'],
  ...badNumbers('num_hidden_layers'),
  ['num_hidden_layers', 0, 'config-out-of-range'],
  ['num_hidden_layers', 4097, 'config-out-of-range'],
  ['num_hidden_layers', 1e9, 'config-out-of-range'],
];

/** Heads that do not fit: 5 divide none of their numbers, and 1024 are more than there are. */
const badHeads: Row[] = [
  ...badSizes('num_attention_heads'),
  ...badNumbers('num_key_value_heads'),
  ['num_key_value_heads', 5, 'preset-not-divisible'],
  ['num_key_value_heads', 1024, 'preset-not-divisible'],
];

const badHeadDim: Row[] = [
  ...badNumbers('head_dim'),
  ['head_dim', 0, 'config-out-of-range'],
  ['head_dim', 1e7, 'config-out-of-range'],
];

const badWords = (key: string): Row[] => [
  [key, 'mamba', 'config-wrong-type'],
  [key, {}, 'config-wrong-type'],
  [key, { length: 24 }, 'config-wrong-type'],
  [`${key}[1]`, 'linear', 'config-unknown-value'],
  [`${key}[1]`, 'toString', 'config-unknown-value'],
  [`${key}[1]`, null, 'config-wrong-type'],
  [`${key}[1]`, undefined, 'config-missing'],
];

const badMamba2 = badSizes('mamba_n_heads', 'mamba_n_groups', 'mamba_d_state', 'mamba_d_conv');

const families: [name: string, control: Config, rows: Row[]][] = [
  [
    'llama',
    models.llama31_8b,
    [...badLayerCount, ...badHeads, ...badSizes('hidden_size'), ...badHeadDim, ['hidden_size', 4100, 'preset-not-divisible']],
  ],
  ['mistral', models.mistral7b_v01, [...badLayerCount, ...badHeads, ...badWindow, ...badWords('layer_types').slice(0, 3)]],
  ['phi3', models.phi3_mini_4k, [...badLayerCount, ...badHeads, ...badWindow]],
  [
    'qwen',
    { ...models.qwen25_7b, use_sliding_window: true, max_window_layers: 14 },
    [
      ...badLayerCount,
      ...badHeads,
      ...badWindow,
      ['sliding_window', undefined, 'config-missing'],
      ['use_sliding_window', 'yes', 'config-wrong-type'],
      ['use_sliding_window', 1, 'config-wrong-type'],
      ['max_window_layers', undefined, 'config-missing'],
      ...badNumbers('max_window_layers'),
      ['layer_types', ['full_attention'], 'preset-list-length'],
    ],
  ],
  [
    'gemma2',
    models.gemma2_9b,
    [
      ...badLayerCount,
      ...badHeads,
      ...badHeadDim,
      ...badWindow,
      ['sliding_window', undefined, 'config-missing'],
      ['use_bidirectional_attention', true, 'preset-not-causal'],
    ],
  ],
  [
    'gemma3',
    { ...models.gemma3_27b.text_config, sliding_window_pattern: 6 },
    [
      ...badLayerCount,
      ...badHeads.filter(([path, value]) => path !== 'num_attention_heads' || (value !== undefined && value !== null)),
      ...badHeadDim,
      ...badWindow,
      ['sliding_window', null, 'config-missing'],
      ...badNumbers('sliding_window_pattern'),
      ['sliding_window_pattern', 0, 'config-out-of-range'],
      ['use_bidirectional_attention', true, 'preset-not-causal'],
    ],
  ],
  [
    'gpt-oss',
    models.gptOss20b,
    [
      ...badLayerCount,
      ...badHeads,
      ...badHeadDim,
      ...badWindow,
      ['sliding_window', null, 'config-missing'],
      ...badWords('layer_types'),
      ['layer_types', [], 'preset-list-length'],
      ['num_hidden_layers', 23, 'preset-list-length'],
      ['num_hidden_layers', 25, 'preset-list-length'],
    ],
  ],
  [
    'jamba',
    models.jambaV01,
    [
      ...badLayerCount,
      ...badHeads,
      ...badSizes('hidden_size', 'mamba_expand', 'mamba_d_state', 'mamba_d_conv'),
      ['attn_layer_period', undefined, 'config-missing'],
      ...badNumbers('attn_layer_period'),
      ['attn_layer_period', 0, 'config-out-of-range'],
      ['attn_layer_offset', undefined, 'config-missing'],
      ...badNumbers('attn_layer_offset'),
      ['attn_layer_offset', 8, 'config-out-of-range'],
      ...badWindow,
    ],
  ],
  [
    'nemotron-h',
    models.nemotronH8b,
    [
      ...badLayerCount.filter(([, value]) => value !== undefined),
      ...badHeads,
      ...badNumbers('attention_head_dim'),
      ...badSizes('mamba_num_heads', 'mamba_head_dim', 'n_groups', 'ssm_state_size', 'conv_kernel'),
      ['n_groups', 7, 'preset-not-divisible'],
      ['hybrid_override_pattern', 5, 'config-wrong-type'],
      ['hybrid_override_pattern', ['M'], 'config-wrong-type'],
      ['hybrid_override_pattern', '', 'preset-list-length'],
      ['hybrid_override_pattern', 'M*-', 'preset-list-length'],
      ['hybrid_override_pattern', undefined, 'config-missing'],
      ['num_hidden_layers', 51, 'preset-list-length'],
      ['layers_block_type', ['mamba'], 'preset-list-length'],
    ],
  ],
  [
    'granite-hybrid',
    models.granite4hSmall,
    [
      ...badLayerCount,
      ...badHeads,
      ...badSizes('hidden_size', 'mamba_expand'),
      ...badMamba2,
      ...badWords('layer_types'),
      ['layer_types', undefined, 'config-missing'],
      ['num_hidden_layers', 41, 'preset-list-length'],
      ...badNumbers('mamba_d_head'),
      ['mamba_d_head', 'automatic', 'config-wrong-type'],
      ['mamba_d_head', 65, 'preset-sizes-disagree'],
      ['mamba_d_head', 63, 'preset-sizes-disagree'],
      ['mamba_n_groups', 3, 'preset-not-divisible'],
    ],
  ],
  [
    'qwen3-next',
    models.qwen3Next80b,
    [
      ...badLayerCount,
      ...badHeads,
      ...badHeadDim,
      ...badSizes('linear_key_head_dim', 'linear_num_value_heads', 'linear_num_key_heads', 'linear_value_head_dim'),
      ...badSizes('linear_conv_kernel_dim'),
      ['linear_num_value_heads', 33, 'preset-not-divisible'],
      ...badNumbers('full_attention_interval'),
      ['full_attention_interval', 0, 'config-out-of-range'],
      ['layer_types', [], 'preset-list-length'],
    ],
  ],
  [
    'falcon-h1',
    models.falconH1_7b,
    [
      ...badLayerCount,
      ...badHeads,
      ...badHeadDim,
      ...badMamba2,
      ...badNumbers('mamba_d_ssm'),
      ['mamba_d_ssm', 3073, 'preset-sizes-disagree'],
      ['mamba_d_head', 64, 'preset-sizes-disagree'],
      ['mamba_n_groups', 5, 'preset-not-divisible'],
    ],
  ],
  [
    'mamba2',
    models.mambaCodestral7b,
    [
      ...badLayerCount,
      ...badSizes('num_heads', 'head_dim', 'n_groups', 'state_size', 'conv_kernel', 'expand', 'hidden_size'),
      ['n_groups', 3, 'preset-not-divisible'],
    ],
  ],
  ['deepseek-v3', models.deepseekV3, [...badLayerCount, ...badSizes('kv_lora_rank', 'qk_rope_head_dim')]],
  ['deepseek-v32', models.deepseekV32, [...badLayerCount, ...badSizes('kv_lora_rank', 'qk_rope_head_dim', 'index_head_dim')]],
];

/** Where the fault of a row is told. Most are told where they are; a wrong sum is told at the part that follows from the others. */
const TOLD_AT: Readonly<Record<string, string>> = {
  'num_hidden_layers preset-list-length gpt-oss': 'layer_types',
  'num_hidden_layers preset-list-length granite-hybrid': 'layer_types',
  'num_hidden_layers preset-list-length nemotron-h': 'hybrid_override_pattern',
  'n_groups preset-not-divisible nemotron-h': 'mamba_num_heads',
  'n_groups preset-not-divisible mamba2': 'num_heads',
  'mamba_n_groups preset-not-divisible granite-hybrid': 'mamba_n_heads',
  'mamba_n_groups preset-not-divisible falcon-h1': 'mamba_n_heads',
  'mamba_d_ssm preset-sizes-disagree falcon-h1': 'mamba_d_head',
};

/** Sets the value at a path of the control case: a key, or a key and one index. */
function withValue(control: Config, path: string, value: unknown): Config {
  const [key, index] = path.split(/[[\]]/);
  if (index === undefined) return { ...control, [key]: value };
  return { ...control, [key]: (control[key] as unknown[]).map((element, at) => (at === Number(index) ? value : element)) };
}

describe.each(families)('the config of %s', (name, control, rows) => {
  test('is valid: the control case', () => {
    expect(faultsOf(control)).toEqual([]);
  });

  test.each(rows)('with %s = %o, and nothing else wrong, is refused: %s', (path, value, code) => {
    const faults = faultsOf(withValue(control, path, value));
    expect(faults).toMatchObject([{ code, path: TOLD_AT[`${path} ${code} ${name}`] ?? path }]);
    if (!code.startsWith('preset-')) expect(faults[0].value).toEqual(value);
    expect(faults[0].message.length).toBeGreaterThan(10);
  });
});

describe('options', () => {
  const notADtype = (key: string): Row[] => [
    [key, null, 'config-wrong-type'],
    [key, 2, 'config-wrong-type'],
    [key, 'float16', 'config-unknown-value'],
    [key, 'toString', 'config-unknown-value'],
  ];

  test.each<Row>([
    ['tokensPerBlock', undefined, 'config-missing'],
    ['tokensPerBlock', null, 'config-wrong-type'],
    ...badNumbers('tokensPerBlock'),
    ['tokensPerBlock', 0, 'config-out-of-range'],
    ['variant', 'both', 'config-unknown-value'],
    ['variant', null, 'config-wrong-type'],
    ...['kvDtype', 'stateDtype', 'convDtype', 'indexKeyDtype'].flatMap(notADtype),
    ['replayTokens', null, 'config-wrong-type'],
    ...badNumbers('replayTokens'),
    ['blockSize', 32, 'config-unknown-key'],
  ])('with %s = %o, and nothing else wrong, are refused: %s', (key, value, code) => {
    const faults = faultsOf(models.nemotronH8b, { tokensPerBlock: 32, [key]: value });
    expect(faults).toMatchObject([{ code, path: `options.${key}`, value }]);
  });

  test.each([
    [undefined, 'config-missing'],
    [null, 'config-wrong-type'],
    [32, 'config-wrong-type'],
  ])('that are %o are refused as a whole', (options, code) => {
    expect(() => presetLayers(models.llama31_8b, options as never)).toThrow(expect.objectContaining({ code, path: 'options' }));
  });
});

describe('a model config', () => {
  test.each([
    [undefined, 'config-missing'],
    [null, 'config-wrong-type'],
    [[], 'config-wrong-type'],
    ['{}', 'config-wrong-type'],
    [() => ({}), 'config-wrong-type'],
  ])('that is %o is refused as a whole', (given, code) => {
    expect(faultsOf(given)).toMatchObject([{ code, path: '' }]);
  });

  test.each<[string, Config, string]>([
    ['no name', {}, 'model_type'],
    ['an unknown name', { model_type: 'bert' }, 'model_type'],
    ['an unknown name and architecture', { model_type: 'bert', architectures: ['BertModel'] }, 'model_type'],
    ['a name that is no word', { model_type: { toString: 'llama' } }, 'model_type'],
    ['an architecture that is no list', { architectures: 'LlamaForCausalLM' }, 'model_type'],
    ['a property of every object as a name', { model_type: 'constructor', architectures: ['__proto__'] }, 'model_type'],
    [
      'an unknown name in its text model',
      { model_type: 'gemma3', text_config: { model_type: 'bert' } },
      'text_config.model_type',
    ],
  ])('with %s is of no known family', (_, modelConfig, path) => {
    expect(faultsOf(modelConfig)).toMatchObject([{ code: 'preset-unknown-family', path }]);
  });

  test('that says no family lists those that are known', () => {
    expect(faultsOf({ model_type: 'bert' })[0].message).toMatch(/got "bert".*llama, mistral, .*deepseek_v32\./);
  });

  test('tells where in its text model a field is', () => {
    const { text_config, ...rest } = models.gemma3_4b;
    expect(faultsOf({ ...rest, text_config: { ...text_config, num_hidden_layers: '34' } })).toMatchObject([
      { code: 'config-wrong-type', path: 'text_config.num_hidden_layers', value: '34' },
    ]);
    expect(faultsOf({ ...rest, text_config: [] })).toMatchObject([{ code: 'config-wrong-type', path: 'text_config' }]);
  });

  test('counts own properties only', () => {
    expect(faultsOf(Object.create(models.llama31_8b))).toMatchObject([{ code: 'preset-unknown-family' }]);
  });

  test('of a mixture must say which layers its window is for', () => {
    const windowed = { ...models.qwen3_30b_a3b, use_sliding_window: true, sliding_window: 4096 };
    expect(faultsOf(windowed)).toMatchObject([{ code: 'config-missing', path: 'layer_types' }]);
    expect(faultsOf({ ...windowed, layer_types: Array(48).fill('sliding_attention') })).toEqual([]);
  });

  test('may have words for layers that need a window it lacks, and is told which', () => {
    const [fault] = faultsOf({ ...models.gptOss20b, sliding_window: null });
    expect(fault).toMatchObject({ code: 'config-missing', path: 'sliding_window', value: null });
    expect(fault.message).toContain('layer 0 has a window');
  });

  test('has a letter that stands for nothing where it stands', () => {
    const pattern = models.nemotronH8b.hybrid_override_pattern.replace('M-M*', 'M-X*');
    expect(faultsOf({ ...models.nemotronH8b, hybrid_override_pattern: pattern })).toMatchObject([
      { code: 'config-unknown-value', path: 'hybrid_override_pattern[6]', value: 'X' },
    ]);
  });

  test('may not have more heads than the hidden size divides into', () => {
    expect(faultsOf({ ...models.mamba2_2_7b, num_heads: 81 })).toMatchObject([
      { code: 'preset-sizes-disagree', path: 'num_heads', value: 81 },
    ]);
    expect(faultsOf({ ...models.falconH1_7b, mamba_n_heads: 23, mamba_d_head: 'auto' })).toMatchObject([
      { code: 'preset-not-divisible', path: 'mamba_n_heads', value: 23 },
    ]);
  });

  test('whose block is too large to count in bytes is refused, below that it is not', () => {
    const huge = { ...models.deepseekV3, num_hidden_layers: 1, kv_lora_rank: 2 ** 20 - 64 };
    // 2^20 values × 4 bytes × 2^31 tokens = 2^53
    const bytesOf = (tokensPerBlock: number) => faultsOf(huge, { tokensPerBlock, kvDtype: 'f32' });
    expect(bytesOf(2 ** 31 - 1)).toEqual([]);
    expect(bytesOf(2 ** 31)).toMatchObject([{ code: 'config-out-of-range', path: '', value: 2 ** 53 }]);
  });

  test('with several faults tells all of them, those of the options first', () => {
    const faulty = { ...models.nemotronH8b, num_key_value_heads: 5, mamba_num_heads: 'many', ssm_state_size: 0, n_groups: null };
    expect(faultsOf(faulty, { tokensPerBlock: 0, variant: 'some' }).map(({ code, path }) => [code, path])).toEqual([
      ['config-out-of-range', 'options.tokensPerBlock'],
      ['config-unknown-value', 'options.variant'],
      ['preset-not-divisible', 'num_key_value_heads'],
      ['config-wrong-type', 'mamba_num_heads'],
      ['config-missing', 'n_groups'],
      ['config-out-of-range', 'ssm_state_size'],
    ]);
  });

  test('with a list of four billion elements is refused without a look at them', () => {
    expect(faultsOf({ ...models.gptOss20b, layer_types: new Array(4_000_000_000) })).toMatchObject([
      { code: 'preset-list-length', path: 'layer_types', value: 4_000_000_000 },
    ]);
  });

  test('does not blame a field for the fault of another', () => {
    const paths = (modelConfig: Config) => faultsOf(modelConfig).map(({ path }) => path);
    expect(paths({ ...models.llama31_8b, num_attention_heads: 0 })).toEqual(['num_attention_heads']);
    expect(paths({ ...models.gptOss20b, num_hidden_layers: '24' })).toEqual(['num_hidden_layers']);
    expect(paths({ ...models.mambaCodestral7b, expand: -2 })).toEqual(['expand']);
    expect(paths({ ...models.jambaV01, attn_layer_period: 0 })).toEqual(['attn_layer_period']);
  });
});

describe('the error', () => {
  test('carries code, path and value of the first fault, and is a BufferwiseError by mark', () => {
    let error: unknown;
    try {
      presetLayers({ ...models.llama31_8b, num_hidden_layers: -4, hidden_size: 'wide' }, { tokensPerBlock: 32 });
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toMatchObject({ name: 'PresetError', code: 'config-out-of-range', path: 'num_hidden_layers', value: -4 });
    expect(BufferwiseError.isInstance(error)).toBe(true);
    const { faults, message } = error as PresetError;
    expect(faults).toHaveLength(2);
    expect(Object.isFrozen(faults) && faults.every(Object.isFrozen)).toBe(true);
    expect(message).toMatch(/^The model config is not valid, 2 faults:\n {2}- num_hidden_layers: .*-4.*\n {2}- hidden_size: /s);
  });
});
