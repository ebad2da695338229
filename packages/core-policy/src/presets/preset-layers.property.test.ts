import fc from 'fast-check';
import { expect, test } from 'vitest';
import { modelConfigs } from '../../test/presets/model-configs.ts';
import { defineCacheConfig } from '../config/cache-config.ts';
import { PresetError } from '../errors/preset-error.ts';
import { presetLayers } from './preset-layers.ts';

const tiers = [{ tier: 'device' as const, quota: 1 << 20 }];

/** Values that a field may be replaced by: near misses first, then anything. */
const replacement = fc.oneof(
  fc.constantFrom(undefined, null, 0, -0, 1, 2, 3, 4095, 4096, 4097, 2 ** 20, 2 ** 53, '', 'auto', 'M*', [], [null], {}),
  fc.integer({ min: -4, max: 5000 }),
  fc.array(fc.constantFrom('full_attention', 'sliding_attention', 'linear_attention', 'mamba', 'attention'), { maxLength: 50 }),
  fc.anything(),
);

test('whatever stands in a model config, it gives layers that a cache config takes, or an error that tells what is wrong', () => {
  const outcomes = { layers: 0, errors: 0 };
  fc.assert(
    fc.property(
      fc.constantFrom(...Object.values(modelConfigs)),
      fc.array(fc.tuple(fc.nat(), replacement), { minLength: 0, maxLength: 3 }),
      fc.constantFrom('whole' as const, 'split' as const),
      fc.constantFrom(1, 16, 32),
      (modelConfig, changes, variant, tokensPerBlock) => {
        const text = modelConfig.text_config as Record<string, unknown> | undefined;
        const changed: Record<string, unknown> = { ...(text ?? modelConfig) };
        const keys = Object.keys(changed);
        for (const [index, value] of changes) changed[keys[index % keys.length]] = value;
        const given = text ? { ...modelConfig, text_config: changed } : changed;
        try {
          const { layers, origins } = presetLayers(given, { tokensPerBlock, variant });
          expect(defineCacheConfig({ tokensPerBlock, layers, tiers }).layers).toHaveLength(layers.length);
          expect(origins).toHaveLength(layers.length);
          outcomes.layers++;
        } catch (error) {
          if (!(error instanceof PresetError)) throw error;
          expect(error.faults.length).toBeGreaterThan(0);
          expect(error.message).not.toMatch(/NaN(?!.*got NaN)/);
          outcomes.errors++;
        }
      },
    ),
    { numRuns: 2000 },
  );
  expect(Math.min(outcomes.layers, outcomes.errors)).toBeGreaterThan(200);
});

test('what a preset says of bytes grows with each size in the file', () => {
  const sizes = ['num_hidden_layers', 'num_key_value_heads', 'head_dim'] as const;
  const config = { model_type: 'llama', num_attention_heads: 64, num_key_value_heads: 2, num_hidden_layers: 3, head_dim: 16 };
  fc.assert(
    fc.property(fc.constantFrom(...sizes), fc.constantFrom(1, 2, 4, 8), (size, times) => {
      const bytes = (model: typeof config) => presetLayers(model, { tokensPerBlock: 16 }).bytesPerToken.required;
      expect(bytes({ ...config, [size]: config[size] * times })).toBe(bytes(config) * times);
    }),
  );
});
