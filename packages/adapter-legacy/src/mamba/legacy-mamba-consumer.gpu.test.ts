import { describeConsumer } from '@bufferwise/adapter-kit/conformance/consumer';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import { mambaHarness, mambaMix, SHAPE } from '../testing/mamba-rig.ts';
import type { LegacyMambaLayer } from './mamba-layer.ts';

const device = await requestTestDevice();

const first: LegacyMambaLayer = { layerId: 0, ...SHAPE };
const second: LegacyMambaLayer = { layerId: 1, ...SHAPE };
const third: LegacyMambaLayer = { layerId: 2, ...SHAPE };

// Without a tolerance: wherever a sequence is cut, and whatever it is packed with, the kernels give the same bits.
describeConsumer(
  'legacy Mamba',
  mambaHarness(device, [
    mambaMix('two layers in a group, required', [first, second]),
    mambaMix(
      'with a ring, required, state and tail in pools of their own',
      [{ ...first, coalescingGroups: { ssm_state: 'state', conv_state: 'tail' } }],
      { rows: 8, maxTokens: 4 },
    ),
    mambaMix('a layer each required, optional and private', [
      first,
      { ...second, reusePolicy: 'optional' },
      { ...third, reusePolicy: 'private' },
    ]),
  ]),
);
