import { requestTestDevice, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import { describe, expect, test, vi } from 'vitest';
import { ComputeContext } from '../../kernel/compute-context.ts';
import { GuardedMemory, randomBelow, randomNumbers, relativeError } from '../testing/guarded-memory-rig.ts';
import { causalConvReference } from './causal-conv.reference.ts';
import { type CausalConvShape, recordCausalConv, type TailPages } from './causal-conv.ts';
import { packRequests } from './packed-requests.ts';
import { packSnapshots, type Snapshot } from './snapshots.ts';

vi.setConfig({ testTimeout: 120_000 });

const device = await requestTestDevice();
const context = ComputeContext.of(device);
const TOLERANCE = 1e-4;
// More than the channels of one workgroup, and none that divides them.
const NUM_CHANNELS = 70;

const random = randomNumbers(11);
const below = randomBelow(random);
const numbers = (length: number) => Float32Array.from({ length }, random);

/** A convolution with its weights, and a pool of tails of so many rows. */
function convolution(width: number, numPages: number, pageRows: number) {
  const shape: CausalConvShape = { numChannels: NUM_CHANNELS, width };
  const weight = numbers(NUM_CHANNELS * width);
  const bias = numbers(NUM_CHANNELS);
  const pool = new GuardedMemory(device, numPages, pageRows * NUM_CHANNELS);
  const buffers = { weight: { buffer: storageBuffer(device, weight) }, bias: { buffer: storageBuffer(device, bias) } };

  /** Runs packed rows, one array for each request, and returns theirs. */
  async function run(
    inputs: readonly Float32Array[],
    pages: { source: readonly number[]; target?: readonly number[]; positions?: readonly number[]; snapshots?: Snapshot[] },
  ): Promise<Float32Array[]> {
    const counts = inputs.map((rows) => rows.length / NUM_CHANNELS);
    const numTokens = counts.reduce((sum, count) => sum + count, 0);
    const input = new GuardedMemory(device, numTokens, NUM_CHANNELS, 1);
    const output = new GuardedMemory(device, numTokens, NUM_CHANNELS, 2);
    let row = 0;
    for (const rows of inputs) {
      for (let at = 0; at < rows.length; at += NUM_CHANNELS) {
        output.own(row);
        input.set(row++, rows.slice(at, at + NUM_CHANNELS));
      }
    }
    const step = context.step('convolution');
    const table = (indices: readonly number[]) => ({ buffer: step.upload(Int32Array.from(indices)) });
    const tail: TailPages = {
      ...pool.pages,
      pageIndex: table(pages.source),
      targetIndex: pages.target && table(pages.target),
      snapshots: pages.snapshots && packSnapshots(step, counts, pages.snapshots),
      ring: pages.positions && { rows: pageRows, positions: table(pages.positions) },
    };
    recordCausalConv(step, shape, {
      ...buffers,
      requests: packRequests(step, counts),
      input: input.rows,
      tail,
      output: output.rows,
    });
    step.submit();
    const rows = await output.read();
    input.destroy();
    output.destroy();
    row = 0;
    return counts.map((count) => {
      const joined = new Float32Array(count * NUM_CHANNELS);
      for (let t = 0; t < count; t++) joined.set(new Float32Array(rows.get(row++)?.buffer as ArrayBuffer), t * NUM_CHANNELS);
      return joined;
    });
  }

  /** What one request's rows give behind a tail, and the tail that they leave in its place. */
  function reference(rows: Float32Array, tail: Float64Array): Float64Array {
    const data = new Float64Array(rows.length);
    const numTokens = rows.length / NUM_CHANNELS;
    causalConvReference(shape, {
      tokensPerRequest: [numTokens],
      input: { data: rows, offsetWords: 0, strideWords: NUM_CHANNELS },
      weight,
      bias,
      tail: { pool: tail, baseWords: 0, strideWords: tail.length, pageIndex: [0] },
      output: { data, offsetWords: 0, strideWords: NUM_CHANNELS },
    });
    return data;
  }

  return { pool, run, reference };
}

describe('a convolution whose tails lie in pages', () => {
  test.each([2, 3, 4])('of width %i begins from shared pages and leaves snapshots', async (width) => {
    const { pool, run, reference } = convolution(width, 20, width - 1);
    const source = [6, 6, 11, -1, 6, 13, 2];
    const target = [1, 8, 11, 3, 19, -1, 5];
    const lengths = [1, 2, 16, 17, 33, 3, 0];
    const tails = new Map([6, 11, 13, 2].map((page) => [page, numbers((width - 1) * NUM_CHANNELS)]));
    for (const [page, tail] of tails) pool.set(page, tail);
    const snapshots = [
      { request: 4, numTokens: 33, pageIndex: 0 },
      { request: 4, numTokens: 17, pageIndex: 10 },
      { request: 4, numTokens: 16, pageIndex: 12 },
      { request: 4, numTokens: 1, pageIndex: 14 },
      { request: 3, numTokens: 2, pageIndex: 16 },
      { request: 1, numTokens: 1, pageIndex: 18 },
      { request: 0, numTokens: 1, pageIndex: -1 },
    ];
    pool.own(1, 8, 3, 19, ...snapshots.map(({ pageIndex }) => pageIndex));
    const inputs = lengths.map((length) => numbers(length * NUM_CHANNELS));
    const outputs = await run(inputs, { source, target, snapshots });
    const expected = new Map<number, ArrayLike<number>>(tails);
    for (const [r, rows] of inputs.entries()) {
      const tail = Float64Array.from(tails.get(source[r]) ?? new Float64Array((width - 1) * NUM_CHANNELS));
      for (let t = 0; t < lengths[r]; t++) {
        const at = t * NUM_CHANNELS;
        const row = reference(rows.subarray(at, at + NUM_CHANNELS), tail);
        expect(relativeError(outputs[r].subarray(at, at + NUM_CHANNELS), row)).toBeLessThan(TOLERANCE);
        for (const { request, numTokens, pageIndex } of snapshots) {
          if (request === r && numTokens === t + 1) expected.set(pageIndex, Float32Array.from(tail));
        }
      }
      if (lengths[r] > 0) expected.set(target[r], Float32Array.from(tail));
    }
    expected.delete(-1);
    const left = new Map([...(await pool.read())].map(([page, words]) => [page, new Float32Array(words.buffer)]));
    expect([...left.keys()].sort()).toEqual([...expected.keys()].sort());
    for (const [page, tail] of expected) expect(left.get(page), `page ${page}`).toEqual(tail);
  });
});

describe('a convolution whose tails are rings', () => {
  test.each([
    [4, 1],
    [4, 4],
    [3, 6],
    [2, 2],
  ])('of width %i takes back any of %i drafts', async (width, maxTokens) => {
    const rows = width - 1 + maxTokens;
    const { pool, run, reference } = convolution(width, 6, rows);
    const targets = [4, 1, 2];
    const tails = targets.map(() => new Float64Array((width - 1) * NUM_CHANNELS));
    pool.own(...targets, 5);
    // A first call brings more than a ring holds, or less; its last tail is also a snapshot, from which a fourth sequence goes on.
    let positions = [40, 2, 0];
    const first = positions.map((length) => numbers(length * NUM_CHANNELS));
    const snapshots = [{ request: 0, numTokens: 40, pageIndex: 5 }];
    const begun = await run(first, { source: [-1, -1, -1], target: targets, positions: [0, 0, 0], snapshots });
    for (const [r, output] of begun.entries()) {
      const expected = reference(first[r], tails[r]);
      if (expected.length > 0) expect(relativeError(output, expected)).toBeLessThan(TOLERANCE);
    }
    positions = [...positions, 40];
    tails.push(tails[0].slice());
    targets.push(3);
    pool.own(3);
    // The third begins only now, the fourth from the shared snapshot.
    let sources = [4, 1, -1, 5];
    for (let s = 0; s < 14; s++) {
      const inputs = positions.map((_, r) => numbers((s === 0 ? 1 + (r % maxTokens) : below(maxTokens + 1)) * NUM_CHANNELS));
      const outputs = await run(inputs, { source: sources, target: targets, positions });
      sources = targets;
      positions = positions.map((position, r) => {
        const drafted = inputs[r].length / NUM_CHANNELS;
        const accepted = below(drafted + 1);
        const kept = inputs[r].subarray(0, accepted * NUM_CHANNELS);
        const expected = reference(kept, tails[r]);
        if (accepted > 0) expect(relativeError(outputs[r].subarray(0, kept.length), expected)).toBeLessThan(TOLERANCE);
        return position + accepted;
      });
    }
    await pool.read();
  });
});
