import type { LayerConfig, ReusePolicy } from '@bufferwise/core-policy';
import type { ConsumerAdapter } from '../../consumer/consumer-adapter.ts';
import { HashConsumer, type HashWork } from '../../memory/hash-consumer.ts';
import type { ConsumerHarness, ConsumerMix } from './harness.ts';
import { policyMixes } from './policy-mixes.ts';

/** Bytes of a page of four tokens: large, so that few fit in and eviction is real. */
const PAGE = 4096;
const STATE = 2048;

const full: LayerConfig = {
  type: 'attention',
  layerId: 0,
  buffers: [
    { role: 'key', size: PAGE },
    { role: 'value', size: PAGE },
  ],
};
const windowed: LayerConfig = {
  type: 'attention',
  layerId: 1,
  slidingWindowSize: 6,
  buffers: [
    { role: 'window_key', size: PAGE },
    { role: 'window_value', size: PAGE },
  ],
};
const sinks: LayerConfig = {
  type: 'attention',
  layerId: 2,
  slidingWindowSize: 5,
  numSinkTokens: 3,
  // Two tokens a page: a block is two of them.
  buffers: [
    { role: 'sink_key', size: PAGE / 2, tokensPerBlockOverride: 2 },
    { role: 'sink_value', size: PAGE },
  ],
};
const recurrent: LayerConfig = {
  type: 'ssm',
  layerId: 3,
  buffers: [
    { role: 'ssm_state', size: STATE },
    { role: 'conv_state', size: STATE },
    { role: 'replay_ring', size: STATE },
  ],
};
/** Three buffers of a layer and one of another in a slot: the scratch blocks of the first cross. */
const crossing: LayerConfig[] = [
  { type: 'attention', layerId: 0, slidingWindowSize: 4, buffers: ['a', 'b', 'c'].map((role) => ({ role, size: PAGE })) },
  { type: 'attention', layerId: 1, slidingWindowSize: 4, buffers: [{ role: 'a', size: PAGE }] },
];

const withPolicies = (layer: LayerConfig, policies: Readonly<Record<string, ReusePolicy>>): LayerConfig => ({
  ...layer,
  buffers: layer.buffers.map((buffer) => ({ ...buffer, reusePolicy: policies[buffer.role] })),
});

const privateRing = (role: string) =>
  role === 'replay_ring' ? (['private'] as const) : (['required', 'optional', 'private'] as const);

/** Every kind of layer with every policy for each buffer, and one of each together. */
export const hashMixes: readonly ConsumerMix[] = [
  ...policyMixes([full]),
  ...policyMixes([windowed]),
  ...policyMixes([sinks]),
  ...policyMixes([recurrent], privateRing),
  ...policyMixes([recurrent, full], (role) =>
    role === 'ssm_state' ? ['required', 'optional'] : role === 'replay_ring' ? ['private'] : ['required'],
  ),
  { name: 'all kinds, required', layers: [full, windowed, sinks, recurrent] },
  {
    name: 'all kinds, split',
    layers: [
      withPolicies(full, { value: 'private' }),
      withPolicies(windowed, { window_value: 'optional' }),
      withPolicies(sinks, { sink_key: 'private' }),
      withPolicies(recurrent, { ssm_state: 'optional', replay_ring: 'private' }),
    ],
  },
  { name: 'crossing layers, required', layers: crossing },
  { name: 'crossing layers, optional', layers: crossing.map((layer) => ({ ...layer, reusePolicy: 'optional' as const })) },
];

/** The hash consumer, as it is or with something around it. */
export function hashHarness(
  wrap: (consumer: HashConsumer) => ConsumerAdapter<HashWork> = (consumer) => consumer,
  mixes: readonly ConsumerMix[] = hashMixes,
): ConsumerHarness<HashWork> {
  return {
    mixes,
    create: ({ layers }) => wrap(new HashConsumer(layers)),
    run(consumer, step, seeds) {
      const outputs = seeds.map((seed) => new Uint32Array(seed.length));
      consumer.record(step, { inputs: seeds, outputs });
      return outputs;
    },
  };
}
