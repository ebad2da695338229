import { describeConsumer } from '@bufferwise/adapter-kit/conformance/consumer';
import { REUSE_POLICIES } from '@bufferwise/core-policy';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import type { Mamba2Layer } from './mamba2-layer.ts';
import { mamba2Harness, TINY } from './mamba2-rig.ts';

const device = await requestTestDevice();

/** Two layers with every policy for state and tail, and one whose tail is filled from less than everything. */
function policyMixes(replay?: Mamba2Layer['replay']): Record<string, readonly Mamba2Layer[]> {
  const mixes: Record<string, readonly Mamba2Layer[]> = {};
  for (const ssm_state of REUSE_POLICIES)
    for (const conv_state of REUSE_POLICIES)
      mixes[`state ${ssm_state}, tail ${conv_state}`] = [3, 5].map((layerId) => ({
        ...TINY,
        layerId,
        replay,
        policies: { ssm_state, conv_state },
      }));
  mixes['one layer, tail private'] = [{ ...TINY, layerId: 1, replay, policies: { conv_state: 'private' } }];
  return mixes;
}

describeConsumer('Mamba-2', mamba2Harness(device, policyMixes()));
describeConsumer('Mamba-2 with a replay ring', mamba2Harness(device, policyMixes({ rows: 16, maxTokens: 6 })));
