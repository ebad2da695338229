import { type ConsumerMix, describeConsumer } from '@bufferwise/adapter-kit/conformance/consumer';
import { REUSE_POLICIES, type ReusePolicy } from '@bufferwise/core-policy';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import { afterAll, vi } from 'vitest';
import { AttentionConsumer } from './attention-consumer.ts';
import { type AttentionLayer, attentionLayerConfig } from './attention-layer.ts';
import { AttentionRig } from './attention-rig.ts';
import { DirtyDevice } from './dirty-device.ts';

// A software device on a busy machine takes its time; nothing here is about speed.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 120_000 });

const TOKENS_PER_BLOCK = 4;

const device = await requestTestDevice();
const rig = new AttentionRig(device);
afterAll(() => rig.destroy());

interface AttentionMix extends ConsumerMix {
  readonly attention: readonly AttentionLayer[];
}

function mixOf(name: string, attention: readonly AttentionLayer[]): AttentionMix {
  return { name, attention, layers: attention.map((layer) => attentionLayerConfig(layer, TOKENS_PER_BLOCK)) };
}

function prove(name: string, mixes: readonly AttentionMix[], tolerance: number): void {
  const layersOf = new Map<AttentionConsumer, readonly AttentionLayer[]>();
  describeConsumer<Parameters<AttentionConsumer['record']>[1]>(name, {
    mixes,
    create(mix) {
      const { attention } = mix as AttentionMix;
      const consumer = new AttentionConsumer(rig.context, { layers: attention, tokensPerBlock: TOKENS_PER_BLOCK });
      layersOf.set(consumer, attention);
      return consumer;
    },
    run(consumer, step, seeds) {
      const attention = consumer as AttentionConsumer;
      return rig.run(attention, layersOf.get(attention) as readonly AttentionLayer[], step, seeds);
    },
    device: () => new DirtyDevice(device),
    tolerance,
    patienceMs: 60_000,
    tokensPerBlock: TOKENS_PER_BLOCK,
    inseparable: [
      ['key', 'key_scale'],
      ['value', 'value_scale'],
    ],
  });
}

const one = { numQueryHeads: 1, numKvHeads: 1, headDim: 8 };
const full: AttentionLayer = { layerId: 0, ...one };
const windowed: AttentionLayer = { layerId: 1, ...one, slidingWindowSize: 6 };
/** Two tokens a page of keys, so that a block is two of them; grouped heads. */
const sinks: AttentionLayer = {
  layerId: 2,
  numQueryHeads: 4,
  numKvHeads: 2,
  headDim: 8,
  slidingWindowSize: 5,
  numSinkTokens: 3,
  tokensPerBlockOverrides: { key: 2 },
};

/** The same with fewer heads, where there are many layers. */
const small: AttentionLayer = { ...sinks, ...one };

/** Layers like one, each with policies of its own for keys and values. */
function split(layer: AttentionLayer, pairs: readonly (readonly [key: ReusePolicy, value: ReusePolicy])[]): AttentionLayer[] {
  return pairs.map(([key, value], layerId) => ({ ...layer, layerId, policies: { key, value } }));
}

const pairs = REUSE_POLICIES.flatMap((key) => REUSE_POLICIES.map((value) => [key, value] as const));
const isPrivate = ([key, value]: (typeof pairs)[number]) => key === 'private' || value === 'private';

/** Keys and values of the first layer share slots with keys of the second, whose values are wider: blocks begin in one slot and end in the next. */
function crossing(more: Partial<AttentionLayer>, values: ReusePolicy): AttentionLayer[] {
  const layer = { ...one, slidingWindowSize: 4, ...more };
  return [
    { layerId: 0, ...layer },
    { layerId: 1, ...layer, valueDim: 16, policies: { value: values } },
  ];
}

prove(
  'attention in f32 and f16',
  [
    mixOf('full, windowed and sinks, all required', [full, windowed, sinks]),
    mixOf(
      'required and optional keys and values',
      split(
        small,
        pairs.filter((pair) => !isPrivate(pair)),
      ),
    ),
    mixOf('private keys or values', split(small, pairs.filter(isPrivate))),
    mixOf('optional keys, private values, f16', [
      { ...full, storage: 'f16', policies: { key: 'optional', value: 'private' } },
      { ...sinks, storage: 'f16', policies: { key: 'optional', value: 'optional' } },
    ]),
    mixOf('blocks that cross slots, optional, f16', crossing({ storage: 'f16', reusePolicy: 'optional' }, 'private')),
  ],
  1e-5,
);

prove(
  'attention in int8',
  [
    mixOf('full, and blocks that cross slots', [
      ...crossing({ storage: 'int8', reusePolicy: 'optional' }, 'private'),
      {
        ...full,
        layerId: 2,
        storage: 'int8',
        tokensPerBlockOverrides: { key: 2 },
        policies: { key: 'required', value: 'private' },
      },
    ]),
  ],
  0.01,
);
