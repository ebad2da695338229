import { defineCacheConfig, type LayerConfig, PresetError } from '@bufferwise/core-policy';
import { describe, expect, it } from 'vitest';
import { dequantiseAll, readGgufModel } from '../gguf/gguf-model.ts';
import { type OracleModel, oracleFile } from '../gguf/testing/oracle-models.ts';
import { KeyValueHistory } from '../model/key-value-history.ts';
import { ReferenceModel } from '../reference/reference-model.ts';
import { describedCacheLayers } from './described-cache-layers.ts';

const kinds = (layers: readonly LayerConfig[]) =>
  layers.map((layer) =>
    layer.type === 'ssm' ? 'M' : layer.slidingWindowSize === undefined ? 'F' : `S${layer.slidingWindowSize}`,
  );

describe.each<[OracleModel, string]>([
  ['llama-103', 'F F F'],
  ['olmo2-101', 'S16 S16 S16 F'],
  ['gemma3-101', 'S16 S16 S16 S16 S16 F'],
  ['mamba2-101', 'M M M'],
  ['granitehybrid-101', 'M M F M'],
])('the cache layers of %s', (name, expected) => {
  const model = readGgufModel(oracleFile(name));
  const { layers } = describedCacheLayers(model.description, { tokensPerBlock: 8 });

  it('are those of the preset of its family', () => {
    expect(kinds(layers).join(' ')).toBe(expected);
    expect(layers.map(({ layerId }) => layerId)).toEqual(model.description.layers.map((_, index) => index));
    expect(() => defineCacheConfig({ tokensPerBlock: 8, layers, tiers: [{ tier: 'device', quota: 1 << 24 }] })).not.toThrow();
  });

  it('have room for exactly what the reference remembers', () => {
    const reference = new ReferenceModel(model.description, dequantiseAll(model));
    const { layers: memories } = reference.createState();
    layers.forEach(({ buffers }, index) => {
      const memory = memories[index];
      const sizes = Object.fromEntries(buffers.map(({ role, size }) => [role, size]));
      if (memory instanceof KeyValueHistory) {
        const size = 8 * memory.width * 4;
        expect(sizes).toEqual({ key: size, value: size });
      } else {
        expect(sizes).toEqual({ ssm_state: memory.state.byteLength, conv_state: memory.rows.byteLength });
      }
    });
  });
});

it('may be stored otherwise, and splits windows off where asked to', () => {
  const { description } = readGgufModel(oracleFile('gemma3-101'));
  const half = describedCacheLayers(description, { tokensPerBlock: 8, kvDtype: 'f16', variant: 'split' });
  expect(half.bytesPerToken).toEqual({ required: 2 * 32 * 2, optional: 5 * 2 * 32 * 2, private: 0 });
  expect(() => describedCacheLayers(description, { tokensPerBlock: 0 })).toThrow(PresetError);
});
