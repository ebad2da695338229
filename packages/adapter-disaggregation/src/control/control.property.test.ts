import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type BusScenario, simulateBus } from './simulated-bus-rig.ts';

/** How many; `BUFFERWISE_FUZZ=5000000` for a long run. */
const RUNS = Number(process.env.BUFFERWISE_FUZZ ?? 100_000) / 50;

const ROLES: readonly (readonly BusScenario['roles'][number][])[] = [
  ['prefill', 'prefill', 'decode', 'decode'],
  ['both', 'both'],
  ['both', 'prefill', 'decode'],
  ['prefill', 'decode'],
];

const atMs = fc.nat(3000);
const scenario: fc.Arbitrary<BusScenario> = fc.record({
  seed: fc.nat(),
  roles: fc.constantFrom(...ROLES),
  slots: fc.constantFrom(1, 2, 8),
  numJobs: fc.integer({ min: 1, max: 12 }),
  jobEveryMs: fc.constantFrom(0, 10, 150),
  workMs: fc.constantFrom(1, 60, 400),
  loss: fc.constantFrom(0, 2, 20, 60),
  duplication: fc.constantFrom(0, 5, 40),
  maxDelayMs: fc.constantFrom(0, 5, 60, 400),
  failure: fc.constantFrom(0, 0, 20),
  calmAtMs: fc.constantFrom(0, 1000, 4000),
  outages: fc.array(fc.record({ atMs, forMs: fc.constantFrom(50, 500, 2000, 5000) }), { maxLength: 2 }),
  partitions: fc.array(fc.record({ worker: fc.nat(3), atMs, forMs: fc.constantFrom(100, 900, 3000) }), { maxLength: 2 }),
  fates: fc.array(
    fc.record({
      worker: fc.nat(3),
      fate: fc.record({
        atMs,
        kind: fc.constantFrom('crash' as const, 'drain' as const),
        backMs: fc.constantFrom(null, 1, 100, 1200),
      }),
    }),
    { maxLength: 4 },
  ),
  limitMs: fc.constantFrom(300, 5000, 20_000),
  mostRetries: fc.constantFrom(0, 2, 50),
  guarded: fc.boolean(),
});

const QUIET: BusScenario = {
  seed: 1,
  roles: ROLES[0],
  slots: 4,
  numJobs: 10,
  jobEveryMs: 20,
  workMs: 60,
  loss: 0,
  duplication: 0,
  maxDelayMs: 0,
  failure: 0,
  calmAtMs: 0,
  outages: [],
  partitions: [],
  fates: [],
  limitMs: 20_000,
  mostRetries: 50,
  guarded: true,
};

const CODES = ['no-worker', 'control-lost', 'job-timeout', 'job-failed'];

describe('whatever the bus and the workers do', () => {
  test('each job ends once, with an answer that a worker gave or with an error that says why, and nothing stays held', () => {
    fc.assert(
      fc.property(scenario, (run) => {
        const { faults, outcomes, held, openJobs } = simulateBus(run);
        expect({ faults, held, openJobs }).toEqual({ faults: [], held: 0, openJobs: 0 });
        for (const outcome of outcomes)
          if (outcome?.kind === 'failed') expect(CODES).toContain(outcome.error.code);
          else expect(outcome?.kind).toBe('done');
      }),
      { numRuns: RUNS },
    );
  }, 600_000);

  test('a run is the same again by its seed', () => {
    const bad = { ...QUIET, seed: 77, loss: 20, duplication: 10, maxDelayMs: 60, calmAtMs: 3000, failure: 20 };
    expect(simulateBus(bad)).toEqual(simulateBus(bad));
    expect(simulateBus(bad).messages).not.toBe(simulateBus({ ...bad, seed: 78 }).messages);
  });
});

test('on a good bus every job is done at its first try', () => {
  for (const [seed, roles] of ROLES.entries()) {
    const { outcomes, generations, faults } = simulateBus({ ...QUIET, seed, roles });
    expect(faults).toEqual([]);
    expect(outcomes.map((outcome) => outcome?.kind)).toEqual(outcomes.map(() => 'done'));
    expect(generations).toBe(outcomes.length);
  }
});

test('a bus that is bad only for a while loses no job, and neither do restarts of it and of the workers', () => {
  for (let seed = 0; seed < 200; seed++) {
    const { outcomes, faults } = simulateBus({
      ...QUIET,
      seed,
      loss: 20,
      duplication: 10,
      maxDelayMs: 100,
      failure: 10,
      calmAtMs: 2000,
      outages: [{ atMs: 150 + (seed % 7) * 100, forMs: 300 }],
      fates: [
        { worker: seed % 4, fate: { atMs: 300 + (seed % 11) * 50, kind: 'crash', backMs: 200 } },
        { worker: (seed + 1) % 4, fate: { atMs: 900, kind: 'drain', backMs: 700 } },
      ],
    });
    expect(faults, `seed ${seed}`).toEqual([]);
    expect(new Set(outcomes.map((outcome) => outcome?.kind)), `seed ${seed}`).toEqual(new Set(['done']));
  }
});

test('without a worker, or with the bus away, jobs fail with a reason and in time', () => {
  const codes = (run: BusScenario) =>
    new Set(simulateBus(run).outcomes.map((outcome) => (outcome?.kind === 'failed' ? outcome.error.code : outcome?.kind)));
  expect(codes({ ...QUIET, roles: [] })).toEqual(new Set(['no-worker']));
  expect(codes({ ...QUIET, roles: ['prefill'] })).toEqual(new Set(['no-worker']));
  expect(codes({ ...QUIET, outages: [{ atMs: 50, forMs: 6000 }] })).toEqual(new Set(['control-lost']));
  expect(codes({ ...QUIET, workMs: 5000, limitMs: 100 }).has('job-timeout')).toBe(true);
  expect(codes({ ...QUIET, failure: 100, calmAtMs: 10_000, mostRetries: 2 })).toEqual(new Set(['job-failed']));
});
