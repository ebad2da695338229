import { expect, it } from 'vitest';
import { cacheLayers } from './layers.ts';
import { readModel } from './model.ts';
import { whalerFiles } from './testing/whaler-files.ts';

const { config } = readModel(whalerFiles());

it('every layer of the model is one layer of the cache, in order', () => {
  const layers = cacheLayers(config, { tokensPerBlock: 16 });
  expect(layers.map(({ layerId, type }) => [layerId, type])).toEqual([
    [0, 'ssm'],
    [1, 'attention'],
    [2, 'ssm'],
    [3, 'attention'],
    [4, 'ssm'],
    [5, 'attention'],
  ]);
});

it('attention layers keep 64 keys and 64 values of 4 bytes for each token of a block', () => {
  const [, windowed, , full] = cacheLayers(config, { tokensPerBlock: 16 });
  const buffers = [
    { role: 'key', size: 4096 },
    { role: 'value', size: 4096 },
  ];
  expect(windowed).toEqual({ type: 'attention', layerId: 1, buffers, slidingWindowSize: 128, numSinkTokens: 4 });
  expect(full).toEqual({ type: 'attention', layerId: 3, buffers });
});

it('Mamba-2 layers keep a state and three rows whatever the block length', () => {
  for (const tokensPerBlock of [1, 64]) {
    expect(cacheLayers(config, { tokensPerBlock })[4].buffers).toEqual([
      { role: 'ssm_state', size: 8 * 32 * 16 * 4 },
      { role: 'conv_state', size: 3 * 288 * 4 },
    ]);
  }
});
