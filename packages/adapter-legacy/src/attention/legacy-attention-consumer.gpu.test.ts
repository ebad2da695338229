import { StepPages } from '@bufferwise/adapter-kit';
import { describeConsumer } from '@bufferwise/adapter-kit/conformance/consumer';
import { AmbiguousLayerError, type LayerConfig, type ReusePolicy } from '@bufferwise/core-policy';
import { ComputeContext } from '@bufferwise/gpu-kernels';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import { describe, expect, test } from 'vitest';
import { attentionHarness, attentionMix, attentionWork, HEADS, TOKENS_PER_BLOCK } from '../testing/attention-rig.ts';
import { DirtyWebGpuDevice } from '../testing/dirty-device-rig.ts';
import { LayerOutputs } from '../testing/rows-rig.ts';
import { refusedStart, type StartOptions, startEngine } from '../testing/start-rig.ts';
import type { LegacyAttentionLayer } from './attention-layer.ts';
import { LegacyAttentionConsumer } from './legacy-attention-consumer.ts';

const device = await requestTestDevice();

const full: LegacyAttentionLayer = { layerId: 0, ...HEADS };
const windowed: LegacyAttentionLayer = { layerId: 1, ...HEADS, slidingWindowSize: 6 };
const windowedAlike: LegacyAttentionLayer = { layerId: 2, ...HEADS, slidingWindowSize: 6 };
const sinks: LegacyAttentionLayer = { layerId: 3, ...HEADS, slidingWindowSize: 5, numSinkTokens: 3 };

// Prefill and decode differ in the last bits, and the suite compares one with the other. Everything else is the same to the bit.
const TOLERANCE = 2e-6;
// Scales of a page grow as rows arrive, so rows are rounded more often in smaller pieces.
const INT8_TOLERANCE = 4e-2;

describeConsumer(
  'legacy attention',
  attentionHarness(
    device,
    [
      attentionMix('two layers in a group, required', [windowed, windowedAlike]),
      attentionMix('full required, window optional, sinks private', [
        full,
        { ...windowed, reusePolicy: 'optional', softCap: 5 },
        { ...sinks, reusePolicy: 'private', sinkScores: [0.5, -1] },
      ]),
      attentionMix('f16, full optional, sinks required', [
        { ...full, storage: 'f16', reusePolicy: 'optional' },
        { ...sinks, storage: 'f16', coalescingGroups: { key: 'keys', value: 'values' } },
      ]),
    ],
    TOLERANCE,
  ),
);

describeConsumer(
  'legacy attention in int8',
  attentionHarness(
    device,
    [attentionMix('optional', [{ ...windowed, storage: 'int8', reusePolicy: 'optional' }])],
    INT8_TOLERANCE,
  ),
);

const context = ComputeContext.of(device);
const consumerOf = (layers: readonly LegacyAttentionLayer[]) =>
  new LegacyAttentionConsumer(context, { layers, tokensPerBlock: TOKENS_PER_BLOCK });

describe('before there is page memory', () => {
  const withPolicy = (layer: LayerConfig, role: string, reusePolicy: ReusePolicy): LayerConfig => ({
    ...layer,
    buffers: layer.buffers.map((buffer) => (buffer.role === role ? { ...buffer, reusePolicy } : buffer)),
  });

  test('a layout of its own layers is bound, and pools are made', async () => {
    const pages = new DirtyWebGpuDevice(device);
    const manager = startEngine(consumerOf([full, windowed]), pages, { scratch: true });
    expect(pages.numPools).toBeGreaterThan(0);
    await manager.close();
  });

  test.each<ReusePolicy>(['optional', 'private'])('a layer with %s values is refused, by its id and its groups', (policy) => {
    const consumer = consumerOf([full, windowed]);
    const [first, second] = consumer.layers;
    const error = refusedStart(device, consumer, { layers: [first, withPolicy(second, 'value', policy)] });
    expect(error).toBeInstanceOf(AmbiguousLayerError);
    expect(error).toMatchObject({ code: 'ambiguous-layer', layerId: 1, groups: [1, 2] });
    expect((error as Error).message).toContain('Layer 1 has buffers in groups 1, 2');
  });

  const own = consumerOf([full, windowed]).layers;
  const changed = (change: (layer: LayerConfig) => LayerConfig): readonly LayerConfig[] => own.map(change);
  const short = (layer: LayerConfig): LayerConfig => ({
    ...layer,
    buffers: layer.buffers.map((buffer) => ({ ...buffer, tokensPerBlockOverride: 2 })),
  });
  const refusals: [what: string, options: StartOptions, reason: RegExp][] = [
    ['a missing layer', { layers: own.slice(0, 1) }, /buffer key of layer 1 is not in it/],
    [
      'pages of another size',
      {
        layers: changed((layer) => ({
          ...layer,
          buffers: layer.buffers.map((buffer) => ({ ...buffer, size: 2 * buffer.size })),
        })),
      },
      /pages of 1024 bytes in it, and this consumer writes 512/,
    ],
    ['blocks of another length', { tokensPerBlock: 8 }, /its blocks have 8 tokens, and this consumer was made for 4/],
    [
      'another window',
      { layers: changed((layer) => (layer.layerId === 1 ? { ...layer, slidingWindowSize: 5 } : layer)) },
      /layer 1 is attention with a window of 5 tokens and 0 blocks of sinks in it, and attention with a window of 6/,
    ],
    [
      'recurrent state',
      { layers: changed(({ layerId, buffers }) => ({ type: 'ssm', layerId, buffers })) },
      /layer 0 is recurrent state/,
    ],
    ['several pages a block', { layers: changed(short) }, /buffer key of layer 0 has 2 pages a block/],
    [
      'scratch blocks that cross slots',
      { layers: [...own, { ...own[1], layerId: 2, buffers: own[1].buffers.slice(0, 1) }], scratch: true },
      /buffer key of layer 1 has scratch blocks that begin in one slot and end in the next/,
    ],
  ];
  test.each(refusals)('%s is refused, with the reason', (_, options, reason) => {
    const error = refusedStart(device, consumerOf([full, windowed]), options);
    expect(error).toMatchObject({ code: 'layout-refused' });
    expect((error as Error).message).toMatch(reason);
  });

  test('what was bound before a refusal is still bound', () => {
    const consumer = consumerOf([full]);
    expect(() => consumer.planReplay([], 0)).toThrow(expect.objectContaining({ code: 'step-refused' }));
    const pages = new DirtyWebGpuDevice(device);
    startEngine(consumer, pages);
    refusedStart(device, consumer, { layers: [withPolicy(consumer.layers[0], 'key', 'private')] });
    expect(consumer.tableBuffers).toEqual([{ layerId: 0, role: 'key' }]);
    expect(consumer.planReplay([], 0)).toEqual({ optionalReuseGroups: [], rebuiltGroups: [], from: 0 });
  });
});

describe('a step', () => {
  /** Serves a prompt of 23 tokens in one step and two more one by one, from tables of all buffers or of those that are read. */
  async function serve(layers: readonly LegacyAttentionLayer[], scratch: boolean, tablesOf: 'all' | 'few') {
    const consumer = consumerOf(layers);
    const manager = startEngine(consumer, new DirtyWebGpuDevice(device), { scratch });
    const outputs = new LayerOutputs(device, HEADS.numQueryHeads * HEADS.headDim);
    const pages = new StepPages(manager.layout, tablesOf === 'few' ? consumer.tableBuffers : manager.bufferGrouping.flat());
    const kv = manager.createKvCache();
    expect(await kv.resume()).toBe(true);
    const values: Float32Array[] = [];
    for (const end of [23, 24, 25]) {
      const start = end === 23 ? 0 : end - 1;
      expect(kv.resize(end, start)).toBe(true);
      pages.fill([kv], Math.ceil(end / TOKENS_PER_BLOCK));
      const request = { start, numTokens: end - start, matched: 0, reusedGroups: new Set<never>() };
      const step = { requests: [request], pages, poolMemory: manager.poolMemory.bind(manager) };
      const compute = context.step('test');
      const seeds = Uint32Array.from({ length: end - start }, (_, i) => 77 + start + i);
      const work = attentionWork(compute, seeds, outputs);
      consumer.record(step, work);
      values.push(
        ...(await outputs.submit(
          compute,
          consumer.layers.map(({ layerId }) => layerId),
          [seeds.length],
        )),
      );
    }
    outputs.destroy();
    await manager.close({ force: true });
    consumer.close();
    return { values, rows: consumer.tableBuffers.length };
  }

  test.each([false, true])('needs the tables of `tableBuffers` alone (scratch: %s)', async (scratch) => {
    const layers = [full, windowed, windowedAlike, { ...sinks, storage: 'int8' as const }];
    const few = await serve(layers, scratch, 'few');
    const all = await serve(layers, scratch, 'all');
    expect(few.values).toEqual(all.values);
    // One a group: full, window, sinks. With scratch one a windowed layer, and one more for the pool of the scales.
    expect(few.rows).toBe(scratch ? 5 : 3);
  });

  test.each(['f32', 'f16', 'int8'] as const)(
    'writes nothing into blocks that were lent, though their tokens are given again (%s)',
    async (storage) => {
      // Layer 0 was matched up to token 9, layer 1 is filled again. Other rows come for the same tokens than before.
      const consumer = consumerOf([
        { ...full, storage },
        { ...windowed, storage, reusePolicy: 'private' },
      ]);
      const pageDevice = new DirtyWebGpuDevice(device);
      const manager = startEngine(consumer, pageDevice);
      consumer.bind(manager.layout);
      const outputs = new LayerOutputs(device, HEADS.numQueryHeads * HEADS.headDim);
      const pages = new StepPages(manager.layout, consumer.tableBuffers);
      const kv = manager.createKvCache();
      await kv.resume();
      kv.resize(12);
      pages.fill([kv], 3);
      const run = (seed: number, start: number, numTokens: number, matched: number) => {
        const requests = [{ start, numTokens, matched, reusedGroups: new Set(matched > 0 ? [manager.getLayerGroupId(0)] : []) }];
        const compute = context.step('test');
        const seeds = Uint32Array.from({ length: numTokens }, (_, i) => seed + i);
        consumer.record(
          { requests, pages, poolMemory: manager.poolMemory.bind(manager) },
          attentionWork(compute, seeds, outputs),
        );
        compute.submit();
      };
      /** Bytes of each block of a layer, all its buffers. */
      const blocksOf = async (layerId: number) => {
        const slots = kv.basePageIndices(manager.getLayerGroupId(layerId));
        const memories = new Set(consumer.layers[layerId].buffers.map(({ role }) => manager.poolMemory(layerId, role)));
        const blocks = Array.from(slots, () => [] as number[]);
        for (const memory of memories) {
          const bytes = new Uint8Array(slots.length * memory.spec.slotBytes);
          await pageDevice.readSlots(memory, slots, bytes);
          blocks.forEach((block, i) => {
            block.push(...bytes.subarray(i * memory.spec.slotBytes, (i + 1) * memory.spec.slotBytes));
          });
        }
        return blocks;
      };
      run(100, 0, 9, 0);
      const before = [await blocksOf(0), await blocksOf(1)];
      run(500, 2, 9, 9);
      const after = [await blocksOf(0), await blocksOf(1)];
      const same = (layerId: number) =>
        before[layerId].map((block, i) => block.every((byte, at) => byte === after[layerId][i][at]));
      expect(same(0)).toEqual([true, true, false]);
      expect(same(1)).toEqual([false, false, false]);
      await manager.close({ force: true });
      consumer.close();
    },
  );

  test('with scratch is refused when it was bound without', async () => {
    const consumer = consumerOf([windowed]);
    const manager = startEngine(consumer, new DirtyWebGpuDevice(device), { scratch: true });
    consumer.bind(manager.layout);
    const kv = manager.createKvCache();
    await kv.resume();
    kv.resize(24);
    const pages = new StepPages(manager.layout, manager.bufferGrouping.flat());
    pages.fill([kv], 6);
    const requests = [{ start: 0, numTokens: 24, matched: 0, reusedGroups: new Set<never>() }];
    const compute = context.step('refused');
    expect(() => consumer.begin({ requests, pages, poolMemory: manager.poolMemory.bind(manager) }, compute)).toThrow(
      expect.objectContaining({ code: 'step-refused', message: expect.stringMatching(/bound without.*scratch: true/) }),
    );
    expect(compute.submit().uploadedBytes).toBe(0);
    await manager.close({ force: true });
  });

  test("of somebody else's layer is refused", async () => {
    const consumer = consumerOf([full]);
    const manager = startEngine(consumer, new DirtyWebGpuDevice(device));
    const pages = new StepPages(manager.layout, consumer.tableBuffers);
    const kv = manager.createKvCache();
    await kv.resume();
    kv.resize(4);
    pages.fill([kv], 1);
    const requests = [{ start: 0, numTokens: 4, matched: 0, reusedGroups: new Set<never>() }];
    const compute = context.step('test');
    const begun = consumer.begin({ requests, pages, poolMemory: manager.poolMemory.bind(manager) }, compute);
    const outputs = new LayerOutputs(device, HEADS.numQueryHeads * HEADS.headDim);
    const rows = attentionWork(compute, new Uint32Array(4), outputs).rows(9);
    expect(() => begun.layer(9, rows)).toThrow(expect.objectContaining({ code: 'step-refused' }));
    await manager.close({ force: true });
  });
});
