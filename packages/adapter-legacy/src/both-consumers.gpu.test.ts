import { reusedGroups, StepPages } from '@bufferwise/adapter-kit';
import { KvCacheManager } from '@bufferwise/cache-manager';
import { defineCacheConfig } from '@bufferwise/core-policy';
import { ComputeContext } from '@bufferwise/gpu-kernels';
import { StorageLayout } from '@bufferwise/scratch-allocator';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import { expect, test } from 'vitest';
import { LegacyAttentionConsumer } from './attention/legacy-attention-consumer.ts';
import { LegacyCacheView } from './legacy-cache-view.ts';
import { LegacyMambaConsumer } from './mamba/legacy-mamba-consumer.ts';
import { attentionWork, HEADS, TOKENS_PER_BLOCK } from './testing/attention-rig.ts';
import { DirtyWebGpuDevice } from './testing/dirty-device-rig.ts';
import { MambaInputs, SHAPE } from './testing/mamba-rig.ts';
import { LayerOutputs } from './testing/rows-rig.ts';

const device = await requestTestDevice();
const context = ComputeContext.of(device);

/** A hybrid model as a layer-based engine runs it: both consumers on one manager, one `StepPages` and one submission a step. */
function startHybrid() {
  const attention = new LegacyAttentionConsumer(context, {
    layers: [
      { layerId: 0, ...HEADS },
      { layerId: 2, ...HEADS, slidingWindowSize: 6, reusePolicy: 'optional' },
    ],
    tokensPerBlock: TOKENS_PER_BLOCK,
  });
  const mamba = new LegacyMambaConsumer(context, {
    layers: [
      { layerId: 1, ...SHAPE },
      { layerId: 3, ...SHAPE },
    ],
  });
  const layers = [...attention.layers, ...mamba.layers].sort((a, b) => a.layerId - b.layerId);
  const tiers = [{ tier: 'device', quota: 16 << 20 }] as const;
  const config = defineCacheConfig({ tokensPerBlock: TOKENS_PER_BLOCK, layers, tiers });
  for (const consumer of [attention, mamba]) consumer.bind(StorageLayout.fromConfig(config));
  const manager = new KvCacheManager({ config, device: new DirtyWebGpuDevice(device), debugChecks: true });
  for (const consumer of [attention, mamba]) consumer.bind(manager.layout);
  const pages = new StepPages(manager.layout, [...attention.tableBuffers, ...mamba.tableBuffers]);
  const outputs = new LayerOutputs(device, HEADS.numQueryHeads * HEADS.headDim);
  const inputs = new MambaInputs(device);

  /** Serves a prompt in one step, commits it, and answers with how much matched and what came out for the rest. */
  async function serve(tokens: readonly number[], commits: readonly number[]) {
    const kv = manager.createKvCache({ tokens: tokens.slice(0, -1) });
    const matched = kv.numCommittedTokens;
    const plans = [attention, mamba].map((consumer) => consumer.planReplay(kv.reuseStatus, matched));
    const plan = {
      optionalReuseGroups: plans.flatMap(({ optionalReuseGroups }) => optionalReuseGroups),
      rebuiltGroups: plans.flatMap(({ rebuiltGroups }) => rebuiltGroups),
      from: Math.min(...plans.map(({ from }) => from)),
    };
    expect(await kv.resume(plan)).toBe(true);
    const held = reusedGroups(kv.reuseStatus, plan, matched);
    const values: Float32Array[] = [];
    let start = plan.from;
    for (const end of commits.filter((count) => count > matched)) {
      kv.resize(end);
      pages.fill([kv], Math.ceil(end / TOKENS_PER_BLOCK));
      const requests = [{ start, numTokens: end - start, matched, reusedGroups: held }];
      const step = { requests, pages, poolMemory: manager.poolMemory.bind(manager) };
      const compute = context.step('hybrid');
      const seeds = Uint32Array.from(tokens.slice(start, end));
      const [attentionStep, mambaStep] = [attention.begin(step, compute), mamba.begin(step, compute)];
      const { rows } = attentionWork(compute, seeds, outputs);
      attentionStep.layer(0, rows(0));
      mambaStep.layer(1, inputs.rows(compute, seeds, 1));
      attentionStep.layer(2, rows(2));
      mambaStep.layer(3, inputs.rows(compute, seeds, 3));
      const [attended] = await outputs.submit(compute, [0, 2], [seeds.length]);
      const [mixed] = await inputs.outputs.submit(context.step('read'), [1, 3], [seeds.length]);
      const known = Math.max(0, matched - start);
      for (const part of [attended, mixed]) values.push(part.subarray((known * part.length) / seeds.length));
      kv.commit(tokens.slice(kv.numCommittedTokens, end));
      start = end;
    }
    kv.close();
    return { matched, values };
  }
  return { manager, serve };
}

test('both consumers on one manager put out the same with a matched prefix as without', async () => {
  const tokens = Array.from({ length: 21 }, (_, i) => 500 + 7 * i);
  const cold = startHybrid();
  const warm = startHybrid();
  expect(new LegacyCacheView(warm.manager).layerGrouping).toEqual([[0], [1, 3], [2]]);
  await cold.serve([...tokens.slice(0, 12).map((token) => token + 1), 1], [12]);
  await warm.serve([...tokens.slice(0, 12), 1], [12]);
  const expected = await cold.serve(tokens, [12, 21]);
  const found = await warm.serve(tokens, [12, 21]);
  expect([expected.matched, found.matched]).toEqual([0, 12]);
  // Both steps of the cold one, and only the second of the warm one.
  expect(found.values).toEqual(expected.values.slice(2));
  for (const { manager } of [cold, warm]) await manager.close({ force: true });
});
