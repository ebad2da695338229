import { expect, test } from 'vitest';
import { mamba2LayerConfig, tailRows } from './mamba2-layer.ts';

const shape = { numHeads: 8, headDim: 32, stateSize: 16, numGroups: 1, convWidth: 4, layerId: 7 };
const policiesOf = (layer: ReturnType<typeof mamba2LayerConfig>) =>
  layer.buffers.map(({ role, reusePolicy }) => [role, reusePolicy]);

test('a layer keeps a state and a tail, and leaves their policy to the layer', () => {
  const layer = mamba2LayerConfig({ ...shape, reusePolicy: 'optional' });
  expect(layer).toMatchObject({ type: 'ssm', layerId: 7, reusePolicy: 'optional' });
  expect(policiesOf(layer)).toEqual([
    ['ssm_state', undefined],
    ['conv_state', undefined],
  ]);
  expect(layer.buffers.map(({ size }) => size)).toEqual([4 * 8 * 32 * 16, 4 * 3 * (8 * 32 + 2 * 16)]);
});

test('with replay it also keeps a ring, which is private unless it is told otherwise, and a longer tail', () => {
  const replay = { rows: 16, maxTokens: 4 };
  expect(policiesOf(mamba2LayerConfig({ ...shape, replay }))[2]).toEqual(['replay_ring', 'private']);
  const policies = { conv_state: 'optional', replay_ring: 'required' } as const;
  expect(policiesOf(mamba2LayerConfig({ ...shape, replay, policies }))).toEqual([
    ['ssm_state', undefined],
    ['conv_state', 'optional'],
    ['replay_ring', 'required'],
  ]);
  expect([tailRows(shape), tailRows({ ...shape, replay })]).toEqual([3, 7]);
});

test('a ring that is too short for two steps is refused', () => {
  expect(() => mamba2LayerConfig({ ...shape, replay: { rows: 7, maxTokens: 4 } })).toThrow('ring of 7 rows');
});
