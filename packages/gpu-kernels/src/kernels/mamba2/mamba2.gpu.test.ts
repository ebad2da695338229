import { readF32, requestTestDevice, storageBuffer } from '@bufferwise-internal/webgpu-node/testing';
import { describe, expect, test, vi } from 'vitest';
import { KernelError } from '../../errors/kernel-error.ts';
import { ComputeContext } from '../../kernel/compute-context.ts';
import { causalConvReference } from '../recurrent/causal-conv.reference.ts';
import { packRequests } from '../recurrent/packed-requests.ts';
import { afterReplay, packReplay, type ReplayCursor, settlesRing } from '../recurrent/replay-ring.ts';
import { randomNumbers, relativeError } from '../testing/guarded-memory-rig.ts';
import { ssmReference } from './mamba2.reference.ts';
import { type Mamba2MixerOperands, recordMamba2Mixer, recordMamba2Replay, warmUpMamba2 } from './mamba2.ts';
import { type Mamba2Shape, mamba2Layout } from './mamba2-shape.ts';
import { type Call, type SequenceOptions, type SequenceResult, SequenceRig } from './sequence-rig.ts';
import { packHeadParams, recordSsmScan, recordSsmStep, ssmRingWords } from './ssm.ts';

const TOLERANCE = 1e-4;

// The software device compiles every shape anew, some in seconds.
vi.setConfig({ testTimeout: 120_000 });

const device = await requestTestDevice();

const DEMO: Mamba2Shape = { numHeads: 8, headDim: 32, stateSize: 16, numGroups: 1, convWidth: 4 };

const rig = (shape: Mamba2Shape, options: SequenceOptions) => new SequenceRig(device, shape, options);
const whole = (lengths: readonly number[]): Call[] => [lengths.map((tokens, sequence) => ({ sequence, tokens }))];

function expectClose(actual: SequenceResult[], expected: SequenceResult[]): void {
  for (let s = 0; s < expected.length; s++) {
    for (const part of ['xBC', 'y', 'tail', 'state'] as const) {
      expect(actual[s][part].length).toBe(expected[s][part].length);
      expect(relativeError(actual[s][part], expected[s][part]), `${part} of sequence ${s}`).toBeLessThan(TOLERANCE);
    }
  }
}

/** Bit for bit; `toEqual` on many thousand numbers would take its time. */
function expectSame(actual: SequenceResult[], expected: SequenceResult[]): void {
  for (let s = 0; s < expected.length; s++) {
    for (const part of ['xBC', 'y', 'tail', 'state'] as const) {
      const at = expected[s][part].findIndex((value, i) => !Object.is(value, actual[s][part][i]));
      expect(at, `first difference in ${part} of sequence ${s}`).toBe(-1);
    }
  }
}

describe('the kernels agree with the reference', () => {
  test('for every length from 1 to 50 tokens, packed together', async () => {
    const lengths = Array.from({ length: 50 }, (_, i) => i + 1);
    const sequences = rig(DEMO, { lengths });
    expectClose(await sequences.run(whole(lengths)), sequences.reference());
  });

  const shapes: [numHeads: number, headDim: number, stateSize: number, numGroups: number, convWidth: number][] = [
    [2, 16, 32, 2, 3],
    [2, 64, 128, 1, 4],
    [1, 9, 1024, 1, 4],
    [6, 1, 1, 3, 3],
    [2, 33, 17, 2, 2],
    [4, 12, 48, 2, 4],
  ];
  test.each(shapes)(
    '%i heads of %i x %i in %i groups, convolution of %i',
    async (numHeads, headDim, stateSize, numGroups, convWidth) => {
      const lengths = [1, 2, 17, 3, 40, 16];
      const sequences = rig({ numHeads, headDim, stateSize, numGroups, convWidth }, { lengths, seed: headDim });
      const expected = sequences.reference();
      expectClose(await sequences.run(whole(lengths)), expected);
      // The same again with steps: all but the last token, then one token each.
      const steps = lengths.map((_, sequence) => ({ sequence, tokens: 1 }));
      const before = lengths.map((tokens, sequence) => ({ sequence, tokens: tokens - 1 })).filter(({ tokens }) => tokens > 0);
      expectClose(await sequences.run([before, steps]), expected);
    },
  );

  test('over 512 tokens', async () => {
    const sequences = rig(DEMO, { lengths: [512] });
    expectClose(await sequences.run(whole([512])), sequences.reference());
  });

  test('from a zero state', async () => {
    const sequences = rig(DEMO, { lengths: [1, 20], pages: 'zero' });
    expectClose(await sequences.run(whole([1, 20])), sequences.reference());
  });

  test.each(['none', 'beyond'] as const)(
    'for requests without a page (%s), which begin at zero and leave nothing',
    async (pages) => {
      const sequences = rig(DEMO, { lengths: [1, 20], pages });
      const actual = await sequences.run(whole([1, 20]));
      const expected = sequences.reference();
      for (const part of ['xBC', 'y'] as const) {
        for (let s = 0; s < 2; s++) expect(relativeError(actual[s][part], expected[s][part])).toBeLessThan(TOLERANCE);
      }
    },
  );

  test('where gates and step sizes are extreme', async () => {
    // Raw values far beyond what exp() of f32 holds, step sizes that vanish and step sizes that wipe the state out.
    const { xBC, dt } = mamba2Layout(DEMO).projection;
    const edit = (row: Float32Array, _: number, token: number) => {
      const extreme = [-1e4, -200, -89, -12, 12, 89, 200, 1e4][token % 8];
      row[xBC + token] = extreme;
      row[dt + (token % DEMO.numHeads)] = extreme;
    };
    const sequences = rig(DEMO, { lengths: [64, 9], edit });
    expectClose(await sequences.run(whole([64, 9])), sequences.reference());
  });

  test('about step sizes so small that 1 + exp(x) has lost their digits', async () => {
    const edit = (row: Float32Array) => {
      row.fill(-12, mamba2Layout(DEMO).projection.dt);
    };
    const sequences = rig(DEMO, { lengths: [100], pages: 'zero', edit });
    const [actual] = await sequences.run(whole([100]));
    expect(relativeError(actual.state, sequences.reference()[0].state)).toBeLessThan(1e-5);
  });
});

describe('a sequence gives the same bits', () => {
  const CUTS = [0, 1, 3, 4, 15, 16, 17, 32, 33, 47];

  test.each([
    ['the demo shape', DEMO],
    ['a state of several slices', { numHeads: 2, headDim: 20, stateSize: 40, numGroups: 2, convWidth: 4 }],
  ])('wherever it is cut, for %s', async (_, shape) => {
    const sequences = rig(shape, { lengths: [47] });
    const expected = await sequences.run(whole([47]));
    for (const cut of CUTS) {
      const calls = [cut, 47 - cut].map((tokens) => [{ sequence: 0, tokens }]);
      expectSame(await sequences.run(calls), expected);
    }
  });

  test.each([
    ['the demo shape', DEMO],
    ['a state of several slices', { numHeads: 2, headDim: 20, stateSize: 40, numGroups: 2, convWidth: 3 }],
  ])('by steps, by scans of one token, and as a whole, for %s', async (_, shape) => {
    const sequences = rig(shape, { lengths: [21] });
    const expected = await sequences.run(whole([21]));
    const steps: Call[] = Array.from({ length: 21 }, () => [{ sequence: 0, tokens: 1 }]);
    expectSame(await sequences.run(steps), expected);
    expectSame(await sequences.run(steps, { always: 'scan' }), expected);
  });

  test('whatever is packed beside it, in any order and cut anywhere', async () => {
    const lengths = [1, 33, 7, 64, 18, 2, 50, 16];
    const sequences = rig({ numHeads: 4, headDim: 16, stateSize: 24, numGroups: 2, convWidth: 4 }, { lengths });
    const expected = await sequences.run(lengths.map((tokens, sequence) => [{ sequence, tokens }]));
    const random = randomNumbers(3);
    const below = (n: number) => Math.floor(((random() + 1) / 2) * n);
    for (let schedule = 0; schedule < 6; schedule++) {
      const left = lengths.slice();
      const calls: Call[] = [];
      while (left.some((tokens) => tokens > 0)) {
        const call: { sequence: number; tokens: number }[] = [];
        for (let sequence = 0; sequence < left.length; sequence++) {
          if (below(4) === 0) continue;
          const tokens = Math.min(left[sequence], [0, 1, 1, 2, 3, 5, 17, 40][below(8)]);
          left[sequence] -= tokens;
          call.splice(below(call.length + 1), 0, { sequence, tokens });
        }
        calls.push(call);
      }
      expectSame(await sequences.run(calls), expected);
    }
  });
});

describe('a layer between its projections', () => {
  const context = ComputeContext.of(device);
  const layout = mamba2Layout(DEMO);
  const numTokens = 5;
  const numPages = 3;

  /** A call of two requests with buffers that just hold what is needed. */
  function operands(step: ReturnType<typeof context.step>, tokensPerRequest = [2, 3]): Mamba2MixerOperands {
    const { rowWords } = layout.projection;
    const pageIndex = { buffer: step.upload(new Int32Array([2, 0])) };
    return {
      requests: packRequests(step, tokensPerRequest),
      projection: { buffer: storageBuffer(device, 4 * numTokens * rowWords), offsetWords: 0, strideWords: rowWords },
      convWeight: { buffer: storageBuffer(device, 4 * layout.numChannels * DEMO.convWidth) },
      convBias: { buffer: storageBuffer(device, 4 * layout.numChannels) },
      headParams: {
        buffer: step.upload(
          packHeadParams({ dtBias: new Array(8).fill(0), aLog: new Array(8).fill(0), dSkip: new Array(8).fill(1) }),
        ),
      },
      tail: {
        pool: storageBuffer(device, 4 * numPages * layout.tailWords),
        baseWords: 0,
        strideWords: layout.tailWords,
        pageIndex,
      },
      state: {
        pool: storageBuffer(device, 4 * numPages * layout.stateWords),
        baseWords: 0,
        strideWords: layout.stateWords,
        pageIndex,
      },
      xBC: { buffer: storageBuffer(device, 4 * numTokens * layout.numChannels), offsetWords: 0, strideWords: layout.numChannels },
      y: { buffer: storageBuffer(device, 4 * numTokens * layout.innerSize), offsetWords: 0, strideWords: layout.innerSize },
    };
  }

  test('serves more requests than one dimension of a dispatch holds', async () => {
    const shape = { numHeads: 1, headDim: 1, stateSize: 1, numGroups: 1, convWidth: 2 };
    const numRequests = 70_000;
    const random = randomNumbers(9);
    const numbers = (length: number) => Float32Array.from({ length }, random);
    const [projection, tails, states] = [numbers(5 * numRequests), numbers(3 * numRequests), numbers(numRequests)];
    const [convWeight, convBias, head] = [numbers(6), numbers(3), { dtBias: [-1], aLog: [0.5], dSkip: [1] }];
    const step = context.step('many');
    const pageIndex = { buffer: step.upload(Int32Array.from({ length: numRequests }, (_, r) => r)) };
    const storage = (content: Float32Array | number) => ({ buffer: storageBuffer(device, content) });
    const pages = (content: Float32Array, strideWords: number) => ({
      pool: storage(content).buffer,
      baseWords: 0,
      strideWords,
      pageIndex,
    });
    const layer = {
      requests: packRequests(step, new Uint8Array(numRequests).fill(1)),
      projection: { ...storage(projection), offsetWords: 0, strideWords: 5 },
      convWeight: storage(convWeight),
      convBias: storage(convBias),
      headParams: storage(packHeadParams(head)),
      tail: pages(tails, 3),
      state: pages(states, 1),
      xBC: { ...storage(12 * numRequests), offsetWords: 0, strideWords: 3 },
      y: { ...storage(4 * numRequests), offsetWords: 0, strideWords: 1 },
    };
    recordMamba2Mixer(step, shape, layer);
    const dt = { ...layer.projection, offsetWords: 4 };
    const scanned = { state: pages(states, 1), y: { ...layer.y, ...storage(4 * numRequests) } };
    recordSsmScan(step, shape, { ...layer, ...scanned, dt });
    step.submit();

    const rows = (data: Float32Array, strideWords: number, offsetWords = 0) => ({ data, offsetWords, strideWords });
    const tokensPerRequest = new Uint8Array(numRequests).fill(1);
    const everyPage = Array.from({ length: numRequests }, (_, r) => r);
    const xBC = rows(new Float32Array(3 * numRequests), 3);
    const y = rows(new Float32Array(numRequests), 1);
    causalConvReference(
      { numChannels: 3, width: 2 },
      {
        tokensPerRequest,
        input: rows(projection, 5, 1),
        weight: convWeight,
        bias: convBias,
        tail: { pool: tails, baseWords: 0, strideWords: 3, pageIndex: everyPage },
        output: xBC,
      },
    );
    const state = { pool: states, baseWords: 0, strideWords: 1, pageIndex: everyPage };
    ssmReference(shape, { tokensPerRequest, xBC, dt: rows(projection, 5, 4), ...head, state, y });
    for (const [buffer, expected] of [
      [layer.tail.pool, tails],
      [layer.state.pool, states],
      [scanned.state.pool, states],
      [layer.y.buffer, y.data],
      [scanned.y.buffer, y.data],
    ] as const) {
      expect(relativeError(await readF32(device, buffer), expected)).toBeLessThan(TOLERANCE);
      buffer.destroy();
    }
  });

  test('decodes by replay as by steps, in two dispatches and without a write of the state', async () => {
    const shape: Mamba2Shape = { numHeads: 2, headDim: 4, stateSize: 16, numGroups: 1, convWidth: 4 };
    const { projection, numChannels, stateWords, innerSize, tailWords } = mamba2Layout(shape);
    const numTokens = 20;
    const random = randomNumbers(12);
    const numbers = (length: number) => Float32Array.from({ length }, random);
    const storage = (content: Float32Array | number) => ({ buffer: storageBuffer(device, content) });
    const rows = (content: Float32Array | number, strideWords: number) => ({ ...storage(content), offsetWords: 0, strideWords });
    const layer = {
      projection: rows(numbers(numTokens * projection.rowWords), projection.rowWords),
      convWeight: storage(numbers(numChannels * 4)),
      convBias: storage(numbers(numChannels)),
      headParams: storage(packHeadParams({ dtBias: [-2, -1], aLog: [0, 1], dSkip: [1, 1] })),
      xBC: rows(4 * numTokens * numChannels, numChannels),
      y: rows(4 * numTokens * innerSize, innerSize),
    };
    const pages = (step: ReturnType<typeof context.step>, pool: GPUBuffer, strideWords: number) => ({
      pool,
      baseWords: 0,
      strideWords,
      pageIndex: { buffer: step.upload(new Int32Array([0])) },
    });
    const scan = context.step('scan');
    const requests = packRequests(scan, [numTokens]);
    const tail = pages(scan, storage(4 * tailWords).buffer, tailWords);
    recordMamba2Mixer(scan, shape, { ...layer, requests, tail, state: pages(scan, storage(4 * stateWords).buffer, stateWords) });
    scan.submit();
    const expected = await readF32(device, layer.y.buffer);

    // Three tokens a step, of which the last is always taken back.
    const ring = { rows: 8, maxTokens: 3 };
    const tailRows = 3 + ring.maxTokens;
    await warmUpMamba2(context, shape, { replay: { ring, tailRows } });
    const pools = [tailRows * numChannels, stateWords, ssmRingWords(shape, ring)].map((words) => storage(4 * words).buffer);
    let cursor: ReplayCursor = { position: 0, length: 0 };
    let numSettled = 0;
    while (cursor.position < numTokens) {
      const count = Math.min(3, numTokens - cursor.position);
      const at = <Rows extends { offsetWords: number; strideWords: number }>(rows: Rows): Rows => ({
        ...rows,
        offsetWords: cursor.position * rows.strideWords,
      });
      const step = context.step('replay');
      recordMamba2Replay(step, shape, {
        ...layer,
        projection: at(layer.projection),
        xBC: at(layer.xBC),
        y: at(layer.y),
        replay: packReplay(step, ring, [count], [cursor]),
        tail: pages(step, pools[0], tailRows * numChannels),
        tailRows,
        state: pages(step, pools[1], stateWords),
        ring: pages(step, pools[2], ssmRingWords(shape, ring)),
      });
      expect(step.submit().numDispatches).toBe(2);
      const settled = settlesRing(ring, cursor, count);
      numSettled += settled ? 1 : 0;
      cursor = afterReplay(cursor, settled, Math.max(1, count - 1));
    }
    expect(relativeError(await readF32(device, layer.y.buffer), expected)).toBeLessThan(TOLERANCE);
    expect(numSettled).toBe(4);
  });

  test('takes two dispatches, whether it scans or steps', () => {
    for (const tokensPerRequest of [
      [2, 3],
      [1, 1],
    ]) {
      const step = context.step('two');
      recordMamba2Mixer(step, DEMO, operands(step, tokensPerRequest));
      expect(step.submit()).toMatchObject({ numDispatches: 2, numCopies: 0 });
    }
  });

  test('takes none for no tokens', () => {
    for (const tokensPerRequest of [[], [0, 0]]) {
      const step = context.step('none');
      recordMamba2Mixer(step, DEMO, operands(step, tokensPerRequest));
      expect(step.submit().numDispatches).toBe(0);
    }
  });

  test('compiles ahead of use', async () => {
    await expect(warmUpMamba2(context, DEMO)).resolves.toBeUndefined();
    await expect(warmUpMamba2(context, { ...DEMO, convWidth: 9 })).rejects.toThrow(KernelError);
  });

  const short = (words: number) => storageBuffer(device, 4 * (words - 1));
  const broken: [what: string, change: (good: Mamba2MixerOperands) => Partial<Mamba2MixerOperands>][] = [
    ['projection rows that end early', (good) => ({ projection: { ...good.projection, buffer: short(numTokens * 552) } })],
    ['an offset that pushes rows beyond the end', (good) => ({ projection: { ...good.projection, offsetWords: 1 } })],
    ['overlapping projection rows', (good) => ({ projection: { ...good.projection, strideWords: 551 } })],
    ['a fractional offset', (good) => ({ y: { ...good.y, offsetWords: 0.5 } })],
    ['a negative offset', (good) => ({ xBC: { ...good.xBC, offsetWords: -1 } })],
    ['too few convolution weights', () => ({ convWeight: { buffer: short(288 * 4) } })],
    ['too few convolution biases', () => ({ convBias: { buffer: short(288) } })],
    ['too few head parameters', () => ({ headParams: { buffer: short(24) } })],
    ['overlapping tail pages', (good) => ({ tail: { ...good.tail, strideWords: 3 * 288 - 1 } })],
    ['overlapping state pages', (good) => ({ state: { ...good.state, strideWords: 8 * 32 * 16 - 1 } })],
    ['a tail base behind the pool', (good) => ({ tail: { ...good.tail, baseWords: numPages * layout.tailWords + 1 } })],
    ['too few page indices', (good) => ({ state: { ...good.state, pageIndex: { ...good.state.pageIndex, offsetWords: 1 } } })],
    ['too few starts of requests', (good) => ({ requests: { ...good.requests, starts: { buffer: short(3) } } })],
    ['xBC rows that end early', (good) => ({ xBC: { ...good.xBC, buffer: short(numTokens * 288) } })],
    ['y rows that end early', (good) => ({ y: { ...good.y, buffer: short(numTokens * 256) } })],
    ['output over its own input', (good) => ({ xBC: { ...good.projection } })],
    ['y in the buffer of xBC', (good) => ({ y: { ...good.xBC } })],
  ];
  test.each(broken)('refuses %s', (_, change) => {
    const step = context.step('broken');
    const good = operands(step);
    expect(() => recordMamba2Mixer(step, DEMO, { ...good, ...change(good) })).toThrow(KernelError);
    expect(() => recordMamba2Mixer(step, DEMO, good)).not.toThrow();
  });

  test('refuses a step for requests of several tokens', () => {
    const step = context.step('several');
    const good = operands(step);
    expect(() => recordSsmStep(step, DEMO, { ...good, dt: { ...good.projection, offsetWords: 544 } })).toThrow(/one token each/);
  });

  test('refuses a negative number of tokens', () => {
    expect(() => packRequests(context.step('negative'), [1, -1])).toThrow(KernelError);
  });
});
