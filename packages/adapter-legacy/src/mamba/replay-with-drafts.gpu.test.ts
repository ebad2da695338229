import { StepPages } from '@bufferwise/adapter-kit';
import { defineCacheConfig, type LayerConfig } from '@bufferwise/core-policy';
import { ComputeContext } from '@bufferwise/gpu-kernels';
import { type PageSource, StorageLayout } from '@bufferwise/scratch-allocator';
import { requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import { describe, expect, test } from 'vitest';
import { SHAPE } from '../testing/mamba-rig.ts';
import { MambaRun } from '../testing/mamba-run-rig.ts';
import { refusedStart } from '../testing/start-rig.ts';
import { LegacyMambaConsumer } from './legacy-mamba-consumer.ts';
import type { LegacyMambaLayer } from './mamba-layer.ts';

const device = await requestTestDevice();
const context = ComputeContext.of(device);

const RING = { rows: 8, maxTokens: 4 } as const;
const layers: readonly LegacyMambaLayer[] = [
  { layerId: 0, ...SHAPE },
  { layerId: 1, ...SHAPE },
];
/** Replay adds up in another order than a scan. */
const TOLERANCE = 1e-5;

const textOf = (id: number, length: number) => Array.from({ length }, (_, i) => 1000 * id + ((i * 37) % 101));

const layoutOf = (configs: readonly LayerConfig[]) =>
  StorageLayout.fromConfig(
    defineCacheConfig({ tokensPerBlock: 4, layers: configs, tiers: [{ tier: 'device', quota: 1 << 24 }] }),
  );

/** What each token of a text puts out in a manager of its own, without any ring. */
async function coldRows(tokens: readonly number[]): Promise<Float32Array> {
  const run = new MambaRun(device, layers);
  const [rows] = await run.step([{ request: await run.open(), seeds: tokens }], false);
  await run.close();
  return rows;
}

function expectRows(found: ArrayLike<number>, expected: Float32Array, position: number, numTokens: number): void {
  const width = layers.length * SHAPE.numHeads * SHAPE.headDim;
  for (let i = 0; i < numTokens * width; i++) {
    const wanted = expected[position * width + i];
    expect(Math.abs(found[i] - wanted)).toBeLessThanOrEqual(TOLERANCE * Math.max(1, Math.abs(wanted)));
  }
}

describe('decoding from the ring', () => {
  test('puts out what a scan does, whichever drafts were taken back, and with requests packed together', async () => {
    const texts = [textOf(1, 40), textOf(2, 40)];
    const expected = [await coldRows(texts[0]), await coldRows(texts[1])];
    const run = new MambaRun(device, layers, RING);
    const requests = [await run.open(), await run.open()];
    const prompts = [9, 6];
    await run.step(
      requests.map((request, i) => ({ request, seeds: texts[i].slice(0, prompts[i]) })),
      false,
    );
    requests.forEach((request, i) => {
      request.cursor = { position: prompts[i], length: 0 };
    });
    for (const [drafts, right] of [
      [3, 1],
      [1, 0],
      [3, 3],
      [2, 1],
      [0, 0],
      [3, 2],
      [2, 0],
    ]) {
      const parts = requests.map((request, i) => {
        const { position } = request.cursor;
        const wrong = textOf(90 + i, drafts - right);
        return { request, seeds: [...texts[i].slice(position, position + 1 + right), ...wrong] };
      });
      const rows = await run.step(parts, true);
      requests.forEach((request, i) => {
        expectRows(rows[i], expected[i], request.cursor.position, 1 + right);
        run.accept(request, 1 + drafts, 1 + right);
      });
    }
    await run.close();
  });

  test('leaves a snapshot that others continue from, once it is settled', async () => {
    const tokens = textOf(3, 31);
    const expected = await coldRows(tokens);
    const run = new MambaRun(device, layers, RING);
    const request = await run.open();
    await run.step([{ request, seeds: tokens.slice(0, 10) }], false);
    request.cursor = { position: 10, length: 0 };
    for (const accepted of [2, 1, 3, 2]) {
      const { position } = request.cursor;
      await run.step([{ request, seeds: [...tokens.slice(position, position + accepted), ...textOf(80, 4 - accepted)] }], true);
      run.accept(request, 4, accepted);
    }
    expect(request.cursor.position).toBe(18);
    run.settle(request);
    request.kv.resize(18, 18);
    request.kv.commit(tokens.slice(0, 18), { snapshot: true });

    // The next one goes on from it by scan, and the first one from its ring, at the same time.
    const next = await run.open(tokens);
    expect(next.kv.numCommittedTokens).toBe(18);
    const [scanned] = await run.step([{ request: next, seeds: tokens.slice(18) }], false);
    expectRows(scanned, expected, 18, 13);
    const [replayed] = await run.step([{ request, seeds: tokens.slice(18, 22) }], true);
    expectRows(replayed, expected, 18, 4);
    await run.close();
  });

  test('refuses cursors without a ring, for other requests, at other positions, and before a match', async () => {
    const nobody: PageSource = { basePageIndices: () => new Int32Array(), ssmBlockBaseIndex: () => -1, scratch: () => null };
    const bound = (ring?: typeof RING) => {
      const consumer = new LegacyMambaConsumer(context, { layers, ring });
      const layout = layoutOf(consumer.layers);
      consumer.bind(layout);
      return { consumer, pages: new StepPages(layout, []) };
    };
    const request = { start: 6, numTokens: 1, matched: 0, reusedGroups: new Set<never>() };
    const refusals = [
      [bound(), [request], [{ position: 6, length: 0 }], /made without a ring/],
      [bound(RING), [request, request], [{ position: 6, length: 0 }], /2 requests have 1 cursors/],
      [bound(RING), [request], [{ position: 5, length: 0 }], /request 0 starts at 6, and its cursor is at 5/],
      [bound(RING), [{ ...request, matched: 9 }], [{ position: 6, length: 0 }], /gives tokens again from 6 on/],
    ] as const;
    for (const [{ consumer, pages }, requests, cursors, reason] of refusals) {
      pages.fill(Array(requests.length).fill(nobody), 1);
      const step = { requests, pages, poolMemory: () => expect.unreachable() };
      const compute = context.step('refused');
      for (const call of [() => consumer.begin(step, compute, cursors), () => consumer.settle(step, compute, cursors)]) {
        expect(call).toThrow(expect.objectContaining({ code: 'step-refused', message: expect.stringMatching(reason) }));
      }
      expect(compute.submit()).toEqual({ numDispatches: 0, numCopies: 0, uploadedBytes: 0 });
    }
  });
});

describe('before there is page memory', () => {
  const consumerOf = () => new LegacyMambaConsumer(context, { layers, ring: RING });

  test('a replay ring of its own policy is refused: it shares the index of the state', () => {
    const consumer = consumerOf();
    const split = consumer.layers.map((layer) => ({
      ...layer,
      buffers: layer.buffers.map((buffer) =>
        buffer.role === 'replay_ring' ? { ...buffer, reusePolicy: 'private' as const } : buffer,
      ),
    }));
    expect(refusedStart(device, consumer, { layers: split })).toMatchObject({
      code: 'ambiguous-layer',
      layerId: 0,
      groups: [0, 1],
    });
  });

  test('a ring of another length is refused, with its bytes', () => {
    const longer = new LegacyMambaConsumer(context, { layers, ring: { rows: 16, maxTokens: 4 } });
    const error = refusedStart(device, consumerOf(), { layers: longer.layers });
    expect(error).toMatchObject({ code: 'layout-refused' });
    expect((error as Error).message).toMatch(/buffer replay_ring of layer 0 has pages of/);
  });

  test('a ring that shares a slot with its state is refused, and by default it does not', () => {
    // State and ring have 192 words each.
    const shape = { layerId: 0, numHeads: 4, headDim: 4, stateSize: 12, numGroups: 1, convWidth: 4 } as const;
    const make = (coalescingGroups: LegacyMambaLayer['coalescingGroups']) =>
      new LegacyMambaConsumer(context, { layers: [{ ...shape, coalescingGroups }], ring: { rows: 6, maxTokens: 3 } });
    const together = make({ ssm_state: 'one', replay_ring: 'one' });
    const error = refusedStart(device, together, {});
    expect(error).toMatchObject({
      code: 'layout-refused',
      message: expect.stringMatching(/state and replay ring of layer 0 share a slot/),
    });
    const apart = make({});
    const layout = layoutOf(apart.layers);
    expect(layout.pageStride(0, 'ssm_state')).toBe(layout.pageStride(0, 'replay_ring'));
    apart.bind(layout);
  });

  test('the ring has the policy of its layer, and is not private by default', () => {
    expect(consumerOf().layers.flatMap(({ buffers }) => buffers.map(({ reusePolicy }) => reusePolicy))).toEqual(
      Array(6).fill(undefined),
    );
    expect(consumerOf().layers.map(({ reusePolicy }) => reusePolicy ?? 'required')).toEqual(['required', 'required']);
  });

  test('a ring that is too short for its steps is refused by the constructor', () => {
    expect(() => new LegacyMambaConsumer(context, { layers, ring: { rows: 7, maxTokens: 4 } })).toThrow(
      expect.objectContaining({ code: 'kernel-layout' }),
    );
  });
});
