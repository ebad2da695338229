import { type BufferConfig, defineCacheConfig, type LayerConfig, LifecycleRegistry } from '@bufferwise/core-policy';
import { StorageLayout } from '@bufferwise/scratch-allocator';
import type { BindOptions, ConsumerAdapter } from '../../consumer/consumer-adapter.ts';
import { BrokenPromiseError, ensure, ensureCode, ensureEqual, failureOf } from '../assertions.ts';
import type { ConsumerHarness, ConsumerMix } from './harness.ts';
import { ConsumerStage } from './stage.ts';
import { hasCrossing } from './steps.ts';
import { type ConsumerPromise, hasState, hasWindow, story, textOf } from './stories.ts';

export const claims: ConsumerPromise = {
  name: 'is tried with everything that it claims',
  async run(harness) {
    await withConsumers(harness, async (consumer, mix) => {
      ensureEqual(plain(consumer.layers), plain(mix.layers), `with ${mix.name}: layers`);
    });
    const { supports } = await aConsumer(harness);
    const shown: Readonly<Record<string, boolean>> = {
      splitBuffers: harness.mixes.some(isSplit),
      scratch: harness.mixes.some(hasWindow),
      crossingScratch: harness.mixes.some(hasCrossing),
      snapshots: harness.mixes.some(hasState),
      replay: harness.mixes.some(needsReplay),
    };
    for (const [flag, isShown] of Object.entries(shown)) {
      ensure(
        isShown || !supports[flag as keyof typeof supports],
        `supports.${flag} is true, and none of the ${harness.mixes.length} mixes of the harness shows it`,
      );
    }
  },
};

export const refusesForeign: ConsumerPromise = {
  name: 'refuses a layout that lacks a buffer of its or has it in another size, and is as before then',
  run: (harness) =>
    withConsumers(harness, async (consumer, mix) => {
      const own = layoutOf(mix.layers, harness);
      consumer.bind(own);
      for (const [what, layers] of [
        ['its last buffer missing', changedLast(mix.layers, () => [])],
        ['its last buffer twice as large', changedLast(mix.layers, (buffer) => [{ ...buffer, size: 2 * buffer.size }])],
      ] as const) {
        await ensureCode(
          () => consumer.bind(layoutOf([...layers, foreignLayer(mix.layers)], harness)),
          'layout-refused',
          `with ${mix.name}: bind to a layout with ${what}`,
        );
      }
      consumer.bind(own);
    }),
};

export const refusesUnsupported: ConsumerPromise = {
  name: 'refuses what its `supports` does not claim before there is memory, and binds to the rest',
  run: (harness) =>
    withConsumers(harness, async (consumer, mix) => {
      const { supports } = consumer;
      for (const [what, layers, options, supported] of tries(mix, supports, harness)) {
        const layout = layoutOf(layers, harness);
        if (supported) {
          consumer.bind(layout, options);
          continue;
        }
        const error = await failureOf(() => consumer.bind(layout, options), `with ${mix.name}: bind to ${what}`);
        const { code } = error as { code?: unknown };
        ensure(
          code === 'layout-refused' || code === 'ambiguous-layer',
          `with ${mix.name}: bind to ${what}: expected an error of code layout-refused or ambiguous-layer, got ${String(error)}`,
        );
      }
    }),
};

export const plans = story({
  name: 'plans nothing without a match, and the same when it is asked again',
  async tell(stage) {
    const { consumer, manager } = stage;
    const fresh = manager.createKvCache();
    const none = { optionalReuseGroups: [], rebuiltGroups: [], from: 0 };
    ensureEqual(consumer.planReplay(fresh.reuseStatus, 0), none, 'planReplay without a match');
    fresh.close();
    const tokens = textOf(1, 23);
    await stage.serve(tokens, [8, 23]);
    const kv = manager.createKvCache({ tokens });
    const ask = () => consumer.planReplay(kv.reuseStatus, kv.numCommittedTokens);
    const first = ask();
    ensureEqual(ask(), first, 'planReplay, asked again');
    kv.close();
  },
});

export const closes: ConsumerPromise = {
  name: 'refuses to bind and to record once it is closed, and may be closed twice',
  run: (harness) =>
    withConsumers(harness, async (consumer, mix) => {
      const layout = layoutOf(mix.layers, harness);
      consumer.bind(layout);
      consumer.close();
      await ensureCode(() => consumer.bind(layout), 'plugin-closed', 'bind after close');
      await ConsumerStage.tell({ ...harness, destroy: () => {} }, mix, {}, async (stage) => {
        stage.consumer.close();
        const sequence = await stage.open(textOf(1, 5));
        await ensureCode(() => stage.step([{ sequence, end: 5 }]), 'plugin-closed', 'record after close');
        sequence.kv.close();
      });
      consumer.close();
    }),
};

/** Layouts that a consumer may be given, and whether it says that it reads them. */
function tries(
  mix: ConsumerMix,
  supports: ConsumerAdapter['supports'],
  { inseparable = [] }: ConsumerHarness,
): [string, readonly LayerConfig[], BindOptions, boolean][] {
  const split = isSplit(mix);
  const window = hasWindow(mix);
  const crossing = hasCrossing(mix);
  const all: [string, readonly LayerConfig[], BindOptions, boolean][] = [
    ['its own layout', mix.layers, {}, supports.splitBuffers || !split],
    [
      'its own layout with scratch',
      mix.layers,
      { scratch: true },
      (supports.splitBuffers || !split) && (supports.scratch || !window) && (supports.crossingScratch || !crossing),
    ],
  ];
  const halves = mix.layers.map((layer) => {
    if (layer.buffers.length < 2) return layer;
    const [{ role: first }] = layer.buffers;
    const withFirst = inseparable.find((roles) => roles.includes(first)) ?? [first];
    const policyOf = (role: string) => (withFirst.includes(role) ? ('required' as const) : ('private' as const));
    return { ...layer, buffers: layer.buffers.map((buffer) => ({ ...buffer, reusePolicy: policyOf(buffer.role) })) };
  });
  if (isSplit({ name: '', layers: halves })) all.push(['layers that are split', halves, {}, supports.splitBuffers]);
  const odd = [...mix.layers, foreignLayer(mix.layers)];
  if (window && hasCrossing({ name: '', layers: odd }) && !crossing && !split)
    all.push(['scratch blocks that cross slots', odd, { scratch: true }, supports.scratch && supports.crossingScratch]);
  return all;
}

/** A layer of somebody else, like the first windowed one but with one buffer. */
function foreignLayer(layers: readonly LayerConfig[]): LayerConfig {
  const layerId = 1 + Math.max(...layers.map((layer) => layer.layerId));
  const like = layers.find((layer) => layer.type === 'attention' && layer.slidingWindowSize !== undefined) ?? layers[0];
  return { ...like, layerId, buffers: like.buffers.slice(0, 1) };
}

function isSplit({ layers }: ConsumerMix): boolean {
  const config = defineCacheConfig({ tokensPerBlock: 16, layers, tiers: [{ tier: 'device', quota: 1 << 30 }] });
  const registry = LifecycleRegistry.fromConfig(config);
  return layers.some(
    ({ layerId, buffers }) =>
      new Set(buffers.filter(({ size }) => size > 0).map(({ role }) => registry.getBufferGroupId(layerId, role))).size > 1,
  );
}

function needsReplay({ layers }: ConsumerMix): boolean {
  return layers.some(({ reusePolicy, buffers }) =>
    buffers.some((buffer) => (buffer.reusePolicy ?? reusePolicy ?? 'required') !== 'required'),
  );
}

function layoutOf(layers: readonly LayerConfig[], { tokensPerBlock = 4 }: ConsumerHarness): StorageLayout {
  return StorageLayout.fromConfig(defineCacheConfig({ tokensPerBlock, layers, tiers: [{ tier: 'device', quota: 1 << 30 }] }));
}

/** Layers whose last real buffer is another one, or gone. */
function changedLast(layers: readonly LayerConfig[], change: (buffer: BufferConfig) => BufferConfig[]): LayerConfig[] {
  const last = layers.findLastIndex(({ buffers }) => buffers.some(({ size }) => size > 0));
  return layers.map((layer, i) => {
    const at = i === last ? layer.buffers.findLastIndex(({ size }) => size > 0) : -1;
    return { ...layer, buffers: layer.buffers.flatMap((buffer, j) => (j === at ? change(buffer) : [buffer])) };
  });
}

const plain = (layers: readonly LayerConfig[]) => JSON.parse(JSON.stringify(layers)) as unknown;

async function aConsumer(harness: ConsumerHarness): Promise<ConsumerAdapter<unknown>> {
  const [mix] = harness.mixes;
  if (mix === undefined) throw new BrokenPromiseError('the harness has no mixes: give at least one');
  const consumer = await harness.create(mix);
  await (harness.destroy ? harness.destroy(consumer) : consumer.close());
  return consumer;
}

async function withConsumers(
  harness: ConsumerHarness,
  tell: (consumer: ConsumerAdapter<unknown>, mix: ConsumerMix) => Promise<void>,
): Promise<void> {
  for (const mix of harness.mixes) {
    const consumer = await harness.create(mix);
    try {
      await tell(consumer, mix);
    } finally {
      await (harness.destroy ? harness.destroy(consumer) : consumer.close());
    }
  }
}
