import { openGpu, requestTestDevice } from '@bufferwise-internal/webgpu-node/testing';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { randomBelow, randomNumbers, relativeError } from '../testing/guarded-memory-rig.ts';
import { type FamilyUnderTest, gatedDeltaUnderTest, mamba2UnderTest } from './family-rig.ts';
import { joined, RecurrentRig, type RigOptions, referenceCall, type TokenInputs, tokensOf } from './recurrent-rig.ts';
import { afterReplay, type ReplayCursor, type ReplayRing, settlesRing } from './replay-ring.ts';
import { stateNumbers } from './state-shape.ts';
import { variantFor } from './variant.ts';

// The software device compiles every kernel anew, some in seconds.
vi.setConfig({ testTimeout: 120_000 });

const available = (await openGpu()).features;
const wanted = (['subgroups', 'shader-f16'] as const).filter((feature) => available.has(feature));
const device = await requestTestDevice({ requiredFeatures: wanted });

const F32_TOLERANCE = 1e-4;
/** What rounding every number of the state to f16 leaves of it, and of what is read from it. */
const F16_TOLERANCE = 4e-3;

// Slices of a state: one, four (so that subgroups of four take them), two with a ragged end.
const small = { numHeads: 2, headDim: 4, stateSize: 16, numGroups: 1 };
const sliced = { numHeads: 4, headDim: 8, stateSize: 64, numGroups: 2 };
const ragged = { numHeads: 2, headDim: 6, stateSize: 22, numGroups: 2 };

const families: [string, FamilyUnderTest][] = [small, sliced, ragged].flatMap((shape, i) => {
  const random = randomNumbers(20 + i);
  const all = [mamba2UnderTest(shape, random), gatedDeltaUnderTest(shape, random)];
  if (shape === small) all.push(gatedDeltaUnderTest({ ...shape, normalize: false, queryScale: 0.1 }, random));
  return all.map((family): [string, FamilyUnderTest] => [`${family.name} ${shape.headDim} x ${shape.stateSize}`, family]);
});
const slicedFamilies = families.filter(([, { shape }]) => shape.stateSize === sliced.stateSize);

const rigs: RecurrentRig[] = [];
afterEach(() => {
  for (const rig of rigs.splice(0)) rig.destroy();
});
function rigOf(family: FamilyUnderTest, options: RigOptions): RecurrentRig {
  const rig = new RecurrentRig(device, family, options);
  rigs.push(rig);
  return rig;
}

function randomState(family: FamilyUnderTest, random: () => number): Float32Array<ArrayBuffer> {
  return Float32Array.from({ length: stateNumbers(family.shape) }, random);
}

/**
 * Requests of all lengths around the border of a chunk, in scrambled pages: some begin from a page that they share and leave their
 * state elsewhere, one begins from nothing, one leaves nothing, and every long one has snapshots.
 */
async function expectScanToBeRight(family: FamilyUnderTest, options: Omit<RigOptions, 'numPages'>, tolerance: number) {
  const random = randomNumbers(5);
  const lengths = [0, 1, 15, 16, 17, 33, 40];
  const rig = rigOf(family, { ...options, numPages: 40 });
  const shared = 3;
  //               none  own  own  shared ...            nothing  own
  const source = [30, 12, 9, shared, shared, -1, 21];
  const target = [31, 12, 9, 17, 25, 5, -1];
  const start = new Map([30, 12, 9, shared, 21].map((page) => [page, rig.setState(page, randomState(family, random))]));
  const snapshots = [
    { request: 6, numTokens: 40, pageIndex: 38 },
    { request: 6, numTokens: 1, pageIndex: 2 },
    { request: 6, numTokens: 16, pageIndex: 36 },
    { request: 6, numTokens: 17, pageIndex: 35 },
    { request: 3, numTokens: 16, pageIndex: 0 },
    { request: 5, numTokens: 9, pageIndex: -1 },
    { request: 5, numTokens: 10, pageIndex: 39 },
  ];
  rig.ownStates(17, 25, 5, ...snapshots.map(({ pageIndex }) => pageIndex));
  const inputs = lengths.map((length) => rig.inputs(length, random));
  const y = await rig.call('scan', inputs, { source, target, snapshots });

  const expectedY: number[] = [];
  const expected = new Map<number, ArrayLike<number>>(start);
  for (const [r, input] of inputs.entries()) {
    const state = Float64Array.from(start.get(source[r]) ?? new Float64Array(stateNumbers(family.shape)));
    for (let t = 0; t < input.numTokens; t++) {
      expectedY.push(...referenceCall(family, tokensOf(family, input, t, t + 1), state));
      for (const { request, numTokens, pageIndex } of snapshots) {
        if (request === r && numTokens === t + 1) expected.set(pageIndex, state.slice());
      }
    }
    if (input.numTokens > 0) expected.set(target[r], state);
  }
  expected.delete(-1);
  expect(relativeError(y, expectedY)).toBeLessThan(tolerance);
  const states = await rig.states();
  expect([...states.keys()].sort()).toEqual([...expected.keys()].sort());
  for (const [page, state] of expected) {
    expect(relativeError(states.get(page) ?? [], state), `page ${page}`).toBeLessThan(tolerance);
  }
}

test.skipIf(!device.features.has('subgroups'))('a device with subgroups takes them for what fits in one', () => {
  expect(variantFor(device, small, 'f32').subgroups).toBe(false);
  expect(variantFor(device, ragged, 'f32').subgroups).toBe((device.adapterInfo.subgroupMinSize ?? 1) >= 2);
  expect(variantFor(device, sliced, 'f32').subgroups).toBe((device.adapterInfo.subgroupMinSize ?? 1) >= 4);
});

describe('a scan gives what the reference gives', () => {
  test.each(families)('from pages, shared pages and none, with snapshots: %s', async (_, family) => {
    await expectScanToBeRight(family, { subgroups: false }, F32_TOLERANCE);
  });

  test.each(slicedFamilies)('with states in f16 as words: %s', async (_, family) => {
    await expectScanToBeRight(family, { dtype: 'f16', nativeF16: false, subgroups: false }, F16_TOLERANCE);
  });

  test.skipIf(!device.features.has('shader-f16')).each(slicedFamilies)('with states in f16: %s', async (_, family) => {
    await expectScanToBeRight(family, { dtype: 'f16', subgroups: false }, F16_TOLERANCE);
  });

  test.skipIf(!device.features.has('subgroups')).each(slicedFamilies)('with sums in subgroups: %s', async (_, family) => {
    await expectScanToBeRight(family, {}, F32_TOLERANCE);
  });
});

describe('a sequence gives the same bits however it is cut into scans and steps', () => {
  test.each([
    ...families.map(([name, family]) => [name, family, { subgroups: false }] as const),
    ...slicedFamilies.map(([name, family]) => [`${name} by default`, family, {}] as const),
  ])('%s', async (_, family, options) => {
    const random = randomNumbers(8);
    const rig = rigOf(family, { ...options, numPages: 4 });
    const start = randomState(family, random);
    rig.setState(0, start);
    rig.setState(2, start);
    const input = rig.inputs(19, random);
    const whole = await rig.call('scan', [input], { source: [0] });
    const parts: Float32Array[] = [];
    for (const [begin, end] of [
      [0, 3],
      [3, 4],
      [4, 5],
      [5, 18],
      [18, 19],
    ]) {
      const how = end - begin === 1 ? 'step' : 'scan';
      parts.push(await rig.call(how, [tokensOf(family, input, begin, end)], { source: [2] }));
    }
    expect(parts.flatMap((part) => [...part])).toEqual([...whole]);
    const states = await rig.states();
    expect(states.get(2)).toEqual(states.get(0));
  });
});

/**
 * Decodes several sequences by replay over many steps, with drafts of which a random number is accepted, and compares every accepted
 * token with the reference. Two sequences begin from one checkpoint that they share.
 */
async function expectReplayToBeRight(
  family: FamilyUnderTest,
  ring: ReplayRing,
  options: Omit<RigOptions, 'numPages' | 'ring'>,
  { numSteps, tolerance }: { numSteps: number; tolerance: number },
) {
  const random = randomNumbers(ring.rows + numSteps);
  const below = randomBelow(random);
  const rig = rigOf(family, { ...options, ring, numPages: 9 });
  const shared = 4;
  const sources = [shared, shared, 7, -1];
  const targets = [1, 8, 7, 3];
  const rings = [5, 0, 2, 6];
  const checkpoint = new Map([shared, 7].map((page) => [page, rig.setState(page, randomState(family, random))]));
  rig.ownStates(1, 8, 3);
  rig.ownRings(...rings);
  const states = sources.map((page) => Float64Array.from(checkpoint.get(page) ?? new Float64Array(stateNumbers(family.shape))));
  let cursors: ReplayCursor[] = sources.map(() => ({ position: 0, length: 0 }));
  const kept: TokenInputs[][] = sources.map(() => []);
  const yWords = family.shape.numHeads * family.shape.headDim;
  let numSettled = 0;
  for (let s = 0; s < numSteps; s++) {
    const inputs = sources.map((_, r) => rig.inputs(s === 0 ? r % (ring.maxTokens + 1) : below(ring.maxTokens + 1), random));
    const accepted = inputs.map(({ numTokens }) => (numTokens === 0 ? 0 : 1 + below(numTokens)));
    const before = sources.slice();
    const y = await rig.replay(inputs, { source: before, target: targets, ring: rings }, cursors);
    let row = 0;
    for (const [r, input] of inputs.entries()) {
      const taken = tokensOf(family, input, 0, accepted[r]);
      kept[r].push(taken);
      const expected = referenceCall(family, taken, states[r]);
      const actual = y.slice(row * yWords, (row + accepted[r]) * yWords);
      if (accepted[r] > 0) expect(relativeError(actual, expected), `step ${s}, request ${r}`).toBeLessThan(tolerance);
      row += input.numTokens;
      if (settlesRing(ring, cursors[r], input.numTokens)) {
        sources[r] = targets[r];
        numSettled++;
      }
    }
    cursors = cursors.map((cursor, r) => afterReplay(cursor, settlesRing(ring, cursor, inputs[r].numTokens), accepted[r]));
  }
  expect(numSettled).toBeGreaterThan(4);
  // What the rings still hold goes to the states at once, without a token.
  const nothing = sources.map(() => rig.inputs(0, random));
  await rig.replay(nothing, { source: sources, target: targets, ring: rings }, cursors, () => true);
  const settled = await rig.states();
  for (const [r, page] of targets.entries()) {
    expect(relativeError(settled.get(page) ?? [], states[r]), `state of request ${r}`).toBeLessThan(tolerance);
  }
  expect(settled.get(shared)).toEqual(checkpoint.get(shared));
  return { rig, family, settled, targets, checkpoint, kept };
}

describe('replay gives what a state that is written at every token gives', () => {
  test.each(families.slice(0, 4))('one token a step: %s', async (_, family) => {
    await expectReplayToBeRight(
      family,
      { rows: 5, maxTokens: 1 },
      { subgroups: false },
      { numSteps: 18, tolerance: F32_TOLERANCE },
    );
  });

  test.each(families)('with drafts that are accepted in part: %s', async (_, family) => {
    const ring = { rows: 8, maxTokens: 3 };
    await expectReplayToBeRight(family, ring, { subgroups: false }, { numSteps: 14, tolerance: F32_TOLERANCE });
  });

  test('over a long sequence, in a ring as short as it may be', async () => {
    const [, family] = families[1];
    const ring = { rows: 4, maxTokens: 2 };
    await expectReplayToBeRight(family, ring, { subgroups: false }, { numSteps: 120, tolerance: F32_TOLERANCE });
  });

  test.each(slicedFamilies)('with a ring in f16: %s', async (_, family) => {
    const ring = { rows: 8, maxTokens: 3, dtype: 'f16' } as const;
    await expectReplayToBeRight(family, ring, { subgroups: false }, { numSteps: 10, tolerance: F16_TOLERANCE });
  });

  test.each(families.slice(-2))('with ring and state in f16: %s', async (_, family) => {
    const ring = { rows: 8, maxTokens: 3, dtype: 'f16' } as const;
    const options = { dtype: 'f16', nativeF16: false, subgroups: false } as const;
    await expectReplayToBeRight(family, ring, options, { numSteps: 10, tolerance: F16_TOLERANCE });
  });

  test('and in Mamba-2 leaves, to the bit, the state that a scan of the accepted tokens leaves', async () => {
    const [, family] = families[0];
    const limits = { numSteps: 20, tolerance: F32_TOLERANCE };
    const replayed = await expectReplayToBeRight(family, { rows: 8, maxTokens: 3 }, { subgroups: false }, limits);
    const rig = rigOf(family, { numPages: 9, subgroups: false });
    for (const [page, state] of replayed.checkpoint) rig.setState(page, state);
    rig.ownStates(...replayed.targets);
    await rig.call('scan', replayed.kept.map(joined), { source: [4, 4, 7, -1], target: replayed.targets });
    const scanned = await rig.states();
    for (const page of replayed.targets) expect(replayed.settled.get(page)).toEqual(scanned.get(page));
  });

  test.each(families.slice(0, 2))('without a ring page: from the checkpoint, and kept nowhere: %s', async (_, family) => {
    const random = randomNumbers(3);
    const rig = rigOf(family, { numPages: 3, ring: { rows: 8, maxTokens: 3 }, subgroups: false });
    const start = randomState(family, random);
    rig.setState(1, start);
    const input = rig.inputs(3, random);
    const cursors = [{ position: 2, length: 2 }];
    const y = await rig.replay([input], { source: [1], ring: [-1] }, cursors);
    expect(relativeError(y, referenceCall(family, input, Float64Array.from(start)))).toBeLessThan(F32_TOLERANCE);
    expect((await rig.states()).get(1)).toEqual(start);
  });
});
