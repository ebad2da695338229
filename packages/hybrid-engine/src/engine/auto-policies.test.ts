import { defineCacheConfig, type LayerConfig } from '@bufferwise/core-policy';
import { describe, expect, it } from 'vitest';
import { advisePolicies } from './auto-policies.ts';

const buffers = [
  { role: 'key', size: 4096 },
  { role: 'value', size: 4096 },
];
const full = (layerId: number): LayerConfig => ({ type: 'attention', layerId, buffers });
const windowed = (layerId: number, slidingWindowSize: number, numSinkTokens = 0): LayerConfig => ({
  type: 'attention',
  layerId,
  buffers,
  slidingWindowSize,
  numSinkTokens,
});
const mamba = (layerId: number): LayerConfig => ({
  type: 'ssm',
  layerId,
  buffers: ['ssm_state', 'conv_state', 'replay_ring'].map((role) => ({ role, size: 8192 })),
});

const advise = (layers: LayerConfig[], quota = 64 << 20) =>
  advisePolicies(defineCacheConfig({ tokensPerBlock: 16, layers, tiers: [{ tier: 'device', quota }] }));

describe('policies are chosen', () => {
  it('so that windows are optional where filling them again is short beside the prompts there is room for', () => {
    const { policies, reasons } = advise([windowed(0, 64), full(1)]);
    expect(policies).toEqual({ '0.key': 'optional', '0.value': 'optional' });
    expect(reasons).toEqual([expect.stringMatching(/^Windows are optional: .* runs at most 78 tokens/)]);
  });

  it.each<[string, LayerConfig[], RegExp]>([
    [
      'the run is as long as the prompts',
      [windowed(0, 64), windowed(1, 60_000), full(2)],
      /at most 60077 tokens, and the cache has room/,
    ],
    ['every layer has a window', [windowed(0, 64), windowed(1, 32)], /nothing would hold a match up/],
    ['sinks are live for ever', [windowed(0, 64, 4), full(1)], /begins at the first token/],
    ['there is recurrent state', [windowed(0, 64), full(1), mamba(2)], /recurrent state/],
  ])('so that windows stay required where %s', (_, layers, reason) => {
    const { policies, reasons } = advise(layers);
    expect(policies['0.key']).toBe('required');
    expect(reasons.at(-1)).toMatch(reason);
  });

  it('so that replay rings are private, and nothing else of a state', () => {
    expect(advise([mamba(0), full(1)]).policies).toEqual({ '0.replay_ring': 'private' });
  });

  it('so that full attention alone is left as it is', () => {
    expect(advise([full(0)])).toEqual({ policies: {}, reasons: [] });
  });
});
