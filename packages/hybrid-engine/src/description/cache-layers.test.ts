import { defineCacheConfig, type LayerConfig } from '@bufferwise/core-policy';
import { describe, expect, it } from 'vitest';
import { dequantiseAll, readGgufModel } from '../gguf/gguf-model.ts';
import { type OracleModel, oracleFile } from '../gguf/testing/oracle-models.ts';
import { KeyValueHistory } from '../model/key-value-history.ts';
import { readModel } from '../model/model.ts';
import { whalerFiles } from '../model/testing/whaler-files.ts';
import { ReferenceModel } from '../reference/reference-model.ts';
import { cacheLayers } from './cache-layers.ts';

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
  const layers = cacheLayers(model.description, { tokensPerBlock: 8 });

  it('are its layers, in order', () => {
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

describe('the cache layers of the demo model', () => {
  const { description } = readModel(whalerFiles());

  it('have windows with sinks between the states', () => {
    const layers = cacheLayers(description, { tokensPerBlock: 16 });
    expect(kinds(layers).join(' ')).toBe('M S128 M F M S128');
    const buffers = [
      { role: 'key', size: 4096 },
      { role: 'value', size: 4096 },
    ];
    expect(layers[1]).toEqual({ type: 'attention', layerId: 1, buffers, slidingWindowSize: 128, numSinkTokens: 4 });
    expect(layers[3]).toEqual({ type: 'attention', layerId: 3, buffers });
  });

  it('keep a state and three rows whatever the block length', () => {
    for (const tokensPerBlock of [1, 64]) {
      expect(cacheLayers(description, { tokensPerBlock })[4].buffers).toEqual([
        { role: 'ssm_state', size: 8 * 32 * 16 * 4 },
        { role: 'conv_state', size: 3 * 288 * 4 },
      ]);
    }
  });
});
