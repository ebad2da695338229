import { describe, expect, test } from 'vitest';
import type { ControlMessage, JobRole } from './control-message.ts';
import { controlTimes } from './control-times.ts';
import { type JobRequest, JobTable, type JobTableAction, type NoPlacement, type Placement } from './job-table.ts';

const TIMES = controlTimes({ takeMs: 100, progressMs: 100, leaseMs: 1000, retryMs: 10, noWorkerMs: 500, controlLostMs: 2000 });
const JOB: JobRequest = { request: 'r', blocks: [], numTokens: 8, body: 'b', limitMs: 100_000 };
const TWO: Placement = { decode: { worker: 'd', address: 'at d' }, prefill: { kind: 'any' } };
const ALONE: Placement = { decode: { worker: 'b', address: '' }, prefill: null };

function tableWith(place: (avoid: ReadonlySet<string>) => Placement | NoPlacement, mostRetries = 3) {
  let nowMs = 0;
  const table = new JobTable({ times: TIMES, mostRetries, nowMs, place: (_, avoid) => place(avoid) });
  table.connected(nowMs);
  const later = (ms: number) => {
    nowMs += ms;
    return table.tick(nowMs);
  };
  const hear = (worker: string, kind: 'taken' | 'progress', role: JobRole, generation = 0) =>
    table.hear(worker, { kind, role, generation, request: 'r' }, nowMs);
  const done = (worker: string, role: JobRole, generation = 0) =>
    table.hear(worker, { kind: 'done', result: 'x', role, generation, request: 'r' }, nowMs);
  return { table, later, hear, done, submit: (job = JOB) => table.submit(job, nowMs), now: () => nowMs };
}

const told = (actions: readonly JobTableAction[]) =>
  actions.flatMap((action): [string, ControlMessage][] =>
    action.do === 'tell' ? [[action.worker, action.message]] : action.do === 'offer-prefill' ? [['any', action.message]] : [],
  );
const settled = (actions: readonly JobTableAction[]) =>
  actions.flatMap((action) => (action.do === 'settle' ? [action.outcome] : []));

describe('a job for two', () => {
  test('is offered for prefill only once the decode side has taken it, and is done when that side is', () => {
    const { submit, hear, done } = tableWith(() => TWO);
    expect(told(submit())).toMatchObject([['d', { kind: 'job', role: 'decode', generation: 0, moves: true }]]);
    expect(told(hear('d', 'taken', 'decode'))).toMatchObject([['any', { kind: 'job', role: 'prefill', decode: TWO.decode }]]);
    expect(told(hear('d', 'taken', 'decode'))).toEqual([]);
    hear('p', 'taken', 'prefill');
    expect(settled(done('p', 'prefill'))).toEqual([]);
    const last = done('d', 'decode');
    expect(settled(last)).toEqual([{ kind: 'done', result: 'x', generation: 0, tries: 1, decode: 'd', prefill: 'p' }]);
    expect(told(last)).toEqual([['d', { kind: 'heard', ended: true, request: 'r', generation: 0, role: 'decode' }]]);
  });

  test('belongs to the first of several that took its prefill; the others are told to stop that part', () => {
    const { submit, hear } = tableWith(() => TWO);
    submit();
    hear('d', 'taken', 'decode');
    hear('p1', 'taken', 'prefill');
    expect(told(hear('p2', 'taken', 'prefill'))).toEqual([
      ['p2', { kind: 'cancel', request: 'r', generation: 0, role: 'prefill' }],
    ]);
    expect(told(hear('p1', 'progress', 'prefill'))).toMatchObject([['p1', { kind: 'heard', ended: false }]]);
  });

  test('whose pages did not come is not asked again of who was to send them, and of the decode side unless it is the one', () => {
    for (const [job, avoided] of [
      [JOB, ['d', 'p']],
      [{ ...JOB, decodeAt: 'd' }, ['p']],
    ] as const) {
      const avoid: string[][] = [];
      const { submit, hear, table, later, now } = tableWith((now) => {
        avoid.push([...now].sort());
        return TWO;
      });
      submit(job);
      hear('d', 'taken', 'decode');
      hear('p', 'taken', 'prefill');
      table.hear('d', { kind: 'failed', reason: 'lost', permanent: false, role: 'decode', generation: 0, request: 'r' }, now());
      later(TIMES.retryMs);
      expect(avoid).toEqual([[], avoided]);
    }
  });

  test('whose prefill worker is gone is tried anew; one that had ended its part may go', () => {
    const { submit, hear, done, table, now } = tableWith(() => TWO);
    submit();
    hear('d', 'taken', 'decode');
    hear('p', 'taken', 'prefill');
    done('p', 'prefill');
    expect(table.gone('p', 'left', now())).toEqual([]);
    expect(told(table.gone('d', 'left', now()))).toEqual([['d', { kind: 'cancel', request: 'r', generation: 0, role: null }]]);
  });
});

describe('a try', () => {
  test('that nobody takes ends in time, and the next one counts instead', () => {
    const { submit, later, hear, done } = tableWith(() => ALONE);
    submit();
    expect(later(99)).toEqual([]);
    expect(told(later(1))).toEqual([['b', { kind: 'cancel', request: 'r', generation: 0, role: null }]]);
    expect(told(later(10))).toMatchObject([['b', { kind: 'job', generation: 1, moves: false }]]);
    expect(told(hear('b', 'progress', 'decode', 0))).toMatchObject([['b', { kind: 'cancel', generation: 0, role: 'decode' }]]);
    const late = done('b', 'decode', 0);
    expect(settled(late)).toEqual([]);
    expect(told(late)).toMatchObject([['b', { kind: 'heard', ended: true, generation: 0 }]]);
    expect(settled(done('b', 'decode', 1))).toMatchObject([{ kind: 'done', generation: 1 }]);
  });

  test('of which nothing is heard any more ends with its lease', () => {
    const { submit, later, hear } = tableWith(() => ALONE);
    submit();
    hear('b', 'taken', 'decode');
    expect(later(999)).toEqual([]);
    hear('b', 'progress', 'decode');
    expect(later(999)).toEqual([]);
    expect(told(later(1))).toMatchObject([['b', { kind: 'cancel' }]]);
  });

  test('is made so many times and no more, and never with one that has just failed', () => {
    const avoided: string[][] = [];
    const { submit, later } = tableWith((avoid) => {
      avoided.push([...avoid]);
      return ALONE;
    }, 2);
    submit();
    let outcomes: ReturnType<typeof settled> = [];
    for (let i = 0; i < 100 && outcomes.length === 0; i++) outcomes = settled(later(10));
    expect(outcomes).toMatchObject([
      { kind: 'failed', error: { code: 'job-failed', message: expect.stringContaining('3 times') } },
    ]);
    expect(avoided).toEqual([[], ['b'], ['b']]);
  });

  test('that was declined is no failure', () => {
    const { submit, later, table, now } = tableWith(() => ALONE, 0);
    submit();
    for (let generation = 0; generation < 20; generation++) {
      table.hear('b', { kind: 'declined', reason: 'busy', request: 'r', generation, role: 'decode' }, now());
      expect(told(later(10))).toMatchObject([['b', { kind: 'job', generation: generation + 1 }]]);
    }
  });
});

test('who waits for a worker that is busy waits, and who waits for one that is not there does not wait for long', () => {
  const none = tableWith(() => ({ lack: 'worker', why: 'nobody is there' }));
  expect(none.submit()).toEqual([]);
  expect(settled(none.later(499))).toEqual([]);
  expect(settled(none.later(10))).toMatchObject([
    { error: { code: 'no-worker', message: expect.stringContaining('nobody is there') } },
  ]);
  const busy = tableWith(() => ({ lack: 'busy', why: 'all are full' }));
  busy.submit();
  expect(settled(busy.later(90_000))).toEqual([]);
  expect(settled(busy.later(10_000))).toMatchObject([{ error: { code: 'job-timeout' } }]);
});

test('while the bus is away no time of a worker runs, and after long enough jobs fail', () => {
  const { submit, hear, later, table, now } = tableWith(() => ALONE);
  submit();
  hear('b', 'taken', 'decode');
  table.disconnected(now());
  expect(later(1999)).toEqual([]);
  expect(table.connected(now())).toEqual([]);
  expect(later(999)).toEqual([]);
  table.disconnected(now());
  expect(settled(later(2000))).toMatchObject([{ error: { code: 'control-lost' } }]);
  expect(table.size).toBe(0);
});

test('a name is good for one job at a time', () => {
  const { submit, table, done } = tableWith(() => ALONE);
  submit();
  expect(submit).toThrowError(expect.objectContaining({ code: 'invalid-job' }));
  expect(told(table.cancel('r'))).toMatchObject([['b', { kind: 'cancel' }]]);
  // What is on its way of the former one is not to be taken for this one's.
  expect(told(submit())).toMatchObject([['b', { kind: 'job', generation: 1 }]]);
  expect(settled(done('b', 'decode', 0))).toEqual([]);
  expect(settled(done('b', 'decode', 1))).toMatchObject([{ kind: 'done', generation: 1, tries: 1 }]);
});
