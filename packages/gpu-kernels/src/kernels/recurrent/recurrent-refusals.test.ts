import { openGpu } from '@bufferwise-internal/webgpu-node';
import { storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import { afterAll, describe, expect, test } from 'vitest';
import { ComputeContext } from '../../kernel/compute-context.ts';
import type { ComputeStep } from '../../kernel/compute-step.ts';
import { recordGatedDelta } from '../gated-delta/gated-delta.ts';
import { recordMamba2Replay } from '../mamba2/mamba2.ts';
import { mamba2Layout } from '../mamba2/mamba2-shape.ts';
import { recordSsmReplay, recordSsmScan, recordSsmStep, type SsmOperands, ssmRingWords } from '../mamba2/ssm.ts';
import { recordCausalConv } from './causal-conv.ts';
import { packRequests } from './packed-requests.ts';
import type { RingPages } from './replay.ts';
import { packReplay } from './replay-ring.ts';
import { packSnapshots } from './snapshots.ts';

const adapter = await openGpu({ dawnOptions: ['backend=null'] });
const device = await adapter.requestDevice({ label: 'null device' });
const context = ComputeContext.of(device);
afterAll(() => device.destroy());

const shape = { numHeads: 2, headDim: 4, stateSize: 16, numGroups: 1 };
const stateWords = 2 * 4 * 16;
const words = (count: number) => storageBuffer(device, 4 * count);
const rows = (strideWords: number, numTokens = 3) => ({ buffer: words(numTokens * strideWords), offsetWords: 0, strideWords });
const table = (step: ComputeStep, ...indices: number[]) => ({ buffer: step.upload(Int32Array.from(indices)) });
const statePages = (step: ComputeStep) => ({
  pool: words(4 * stateWords),
  baseWords: 0,
  strideWords: stateWords,
  pageIndex: table(step, 1, 2),
});

function operands(step: ComputeStep, tokensPerRequest = [2, 1]): SsmOperands {
  return {
    requests: packRequests(step, tokensPerRequest),
    xBC: rows(8 + 32),
    dt: rows(2),
    headParams: { buffer: words(6) },
    state: statePages(step),
    y: rows(8),
  };
}

const refusal = (code: string, words: RegExp) => expect.objectContaining({ code, message: expect.stringMatching(words) });

describe('a kernel says why it cannot read a layout', () => {
  test('when rows of f16 end in half a word', () => {
    const step = context.step('test');
    const good = operands(step);
    const state = { ...good.state, dtype: 'f16' } as const;
    expect(() => recordSsmScan(step, shape, { ...good, state })).not.toThrow();
    expect(() => recordSsmScan(step, { ...shape, stateSize: 15 }, { ...good, state })).toThrow(
      refusal('kernel-layout', /stateSize is 15.*half a word.*Store f32/),
    );
  });

  test('when tables lie in several buffers', () => {
    const step = context.step('test');
    const good = operands(step);
    const state = { ...good.state, targetIndex: { buffer: words(2) } };
    expect(() => recordSsmScan(step, shape, { ...good, state })).toThrow(
      refusal('kernel-layout', /stateTarget.*several buffers.*Upload all/),
    );
  });

  test('when tables lie in one buffer that was there before, it reads them', () => {
    const step = context.step('test');
    const buffer = words(256);
    const requests = { numRequests: 2, numTokens: 3, oneTokenEach: false, starts: { buffer, offsetWords: 64 } };
    const good = operands(step);
    const state = { ...good.state, pageIndex: { buffer }, targetIndex: { buffer: { buffer, offset: 512 } } };
    expect(() => recordSsmScan(step, shape, { ...good, requests, state })).not.toThrow();
  });

  test('when a convolution is to keep tails in f16, or in a ring too short', () => {
    const step = context.step('test');
    const conv = {
      requests: packRequests(step, [2, 1]),
      input: rows(5),
      weight: { buffer: words(20) },
      bias: { buffer: words(5) },
      output: rows(5),
    };
    const tail = { pool: words(60), baseWords: 0, strideWords: 15, pageIndex: table(step, 0, 1) };
    const record = (change: object) =>
      recordCausalConv(step, { numChannels: 5, width: 4 }, { ...conv, tail: { ...tail, ...change } });
    expect(() => record({})).not.toThrow();
    expect(() => record({ ring: { rows: 3, positions: table(step, 0, 0) } })).not.toThrow();
    expect(() => record({ dtype: 'f16' })).toThrow(refusal('kernel-layout', /Store f32/));
    expect(() => record({ ring: { rows: 2, positions: table(step, 0, 0) } })).toThrow(refusal('kernel-layout', /2 rows/));
    expect(() => record({ ring: { rows: 3, positions: table(step) } })).toThrow(refusal('kernel-dispatch', /positions/));
  });
});

describe('a call is refused', () => {
  test('with snapshots outside of a request, or of another call', () => {
    const step = context.step('test');
    for (const [request, numTokens] of [
      [0, 0],
      [0, 3],
      [2, 1],
      [0, 1.5],
    ]) {
      const snapshot = { request, numTokens, pageIndex: 3 };
      expect(() => packSnapshots(step, [2, 1], [snapshot])).toThrow(refusal('kernel-dispatch', /snapshot/));
    }
    const good = operands(step);
    const snapshots = packSnapshots(step, [2, 1], [{ request: 0, numTokens: 2, pageIndex: 3 }]);
    expect(() => recordSsmScan(step, shape, { ...good, state: { ...good.state, snapshots } })).not.toThrow();
    const others = packSnapshots(step, [2], []);
    expect(() => recordSsmScan(step, shape, { ...good, state: { ...good.state, snapshots: others } })).toThrow(
      refusal('kernel-dispatch', /snapshots are of 1 requests/),
    );
  });

  test('with snapshots in a step, which takes one token', () => {
    const step = context.step('test');
    const good = operands(step, [1, 1]);
    const snapshots = packSnapshots(step, [1, 1], [{ request: 0, numTokens: 1, pageIndex: 3 }]);
    expect(() => recordSsmStep(step, shape, good)).not.toThrow();
    expect(() => recordSsmStep(step, shape, { ...good, state: { ...good.state, snapshots } })).toThrow(/take a scan/);
  });

  test('with too few target pages', () => {
    const step = context.step('test');
    const good = operands(step);
    const state = { ...good.state, targetIndex: table(step, 1) };
    expect(() => recordSsmScan(step, shape, { ...good, state })).toThrow(refusal('kernel-dispatch', /state.targetIndex/));
  });

  test('with gates of a gated delta net that end early', () => {
    const step = context.step('test');
    const { requests, state } = operands(step);
    const good = {
      requests,
      qkv: rows(32 + 8),
      decay: rows(2),
      write: rows(2),
      headParams: { buffer: words(4) },
      state,
      y: rows(8),
    };
    expect(() => recordGatedDelta(step, shape, good)).not.toThrow();
    for (const name of ['qkv', 'decay', 'write', 'y'] as const) {
      const short = { ...good[name], buffer: words(3 * good[name].strideWords - 1) };
      expect(() => recordGatedDelta(step, shape, { ...good, [name]: short })).toThrow(
        refusal('kernel-dispatch', new RegExp(name)),
      );
    }
  });

  test('with a ring that does not fit its pages or tables', () => {
    const step = context.step('test');
    const ring = { rows: 8, maxTokens: 2 };
    const ringWords = ssmRingWords(shape, ring);
    const good = operands(step);
    const cursors = [
      { position: 3, length: 1 },
      { position: 0, length: 0 },
    ];
    const replay = packReplay(step, ring, [2, 1], cursors);
    const pages = { pool: words(2 * ringWords), baseWords: 0, strideWords: ringWords, pageIndex: table(step, 0, 1) };
    const record = (change: Partial<RingPages>, other = ring) =>
      recordSsmReplay(step, shape, { ...good, replay: { ...replay, ring: other }, ring: { ...pages, ...change } });
    expect(() => record({})).not.toThrow();
    expect(() => record({ strideWords: ringWords - 1 })).toThrow(refusal('kernel-dispatch', /ring.strideWords/));
    expect(() => record({ pageIndex: table(step, 0) })).toThrow(refusal('kernel-dispatch', /ring.pageIndex/));
    expect(() => record({}, { ...ring, rows: 3 })).toThrow(refusal('kernel-layout', /too short/));
    expect(() => record({ strideWords: 2 ** 20 }, { rows: 512, maxTokens: 200 })).toThrow(
      refusal('kernel-unsupported', /maxComputeWorkgroupStorageSize/),
    );
    const snapshots = packSnapshots(step, [2, 1], [{ request: 0, numTokens: 2, pageIndex: 3 }]);
    const state = { ...good.state, snapshots };
    expect(() => recordSsmReplay(step, shape, { ...good, state, replay, ring: pages })).toThrow(/Settle the ring/);
  });

  test('of a layer whose tail ring would lose rows that drafts fall back on', () => {
    const layer = { ...shape, convWidth: 4 };
    const { projection, numChannels } = mamba2Layout(layer);
    const step = context.step('test');
    const ring = { rows: 8, maxTokens: 2 };
    const replay = packReplay(step, ring, [1], [{ position: 0, length: 0 }]);
    const pages = (pageWords: number) => ({
      pool: words(pageWords),
      baseWords: 0,
      strideWords: pageWords,
      pageIndex: table(step, 0),
    });
    const good = {
      projection: rows(projection.rowWords, 1),
      convWeight: { buffer: words(4 * numChannels) },
      convBias: { buffer: words(numChannels) },
      headParams: { buffer: words(6) },
      xBC: rows(numChannels, 1),
      y: rows(8, 1),
      replay,
      tail: pages(5 * numChannels),
      tailRows: 5,
      state: pages(stateWords),
      ring: pages(ssmRingWords(shape, ring)),
    };
    expect(() => recordMamba2Replay(step, layer, good)).not.toThrow();
    expect(() => recordMamba2Replay(step, layer, { ...good, tailRows: 4 })).toThrow(refusal('kernel-layout', /tailRows is 4.*5/));
  });
});
