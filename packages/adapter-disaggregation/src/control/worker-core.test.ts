import { describe, expect, test } from 'vitest';
import { type ControlMessage, checkMessage, type Job } from './control-message.ts';
import { controlTimes } from './control-times.ts';
import { type WorkerAction, WorkerCore, type WorkerInput } from './worker-core.ts';

const TIMES = controlTimes({ heartbeatMs: 100, expiryMs: 500, progressMs: 100, leaseMs: 1000, controlLostMs: 3000 });
const JOB: Job = { request: 'r', generation: 0, role: 'prefill', decode: { worker: 'd', address: 'a' }, moves: true, body: 'b' };
const ID = { request: 'r', generation: 0, role: 'prefill' } as const;

function workerAt(slots = 2, role: 'prefill' | 'decode' | 'both' = 'both') {
  let nowMs = 0;
  const core = new WorkerCore({
    worker: { id: 'w', role, address: '', fingerprint: '', layoutHash: '', slots },
    times: TIMES,
    nowMs,
  });
  const handle = (input: WorkerInput, afterMs = 0): WorkerAction[] => {
    nowMs += afterMs;
    const actions = core.handle(input, nowMs);
    for (const action of actions) if ('message' in action) checkMessage(JSON.parse(JSON.stringify(action.message)));
    return actions;
  };
  const hear = (message: ControlMessage, afterMs = 0) => handle({ kind: 'message', from: 'r1', message }, afterMs);
  handle({ kind: 'connected' });
  return { core, handle, hear, offer: (job: Partial<Job> = {}) => hear({ kind: 'job', ...JOB, ...job }) };
}

const told = (actions: readonly WorkerAction[]) => actions.flatMap((action) => (action.do === 'tell' ? [action.message] : []));
const kinds = (actions: readonly WorkerAction[]) =>
  actions.map((action) => ('message' in action ? action.message.kind : action.do));
const result = { kind: 'ended', router: 'r1', job: ID, end: { kind: 'done', result: 'x' } } as const;

describe('a job', () => {
  test('is taken once, and said to be taken as often as it is offered', () => {
    const { offer } = workerAt();
    expect(kinds(offer())).toEqual(['taken', 'run']);
    expect(kinds(offer())).toEqual(['taken']);
  });

  test('whose result was not heard is told again until it is, and then never run again', () => {
    const { offer, handle, hear } = workerAt();
    offer();
    expect(told(handle(result))).toEqual([{ kind: 'done', result: 'x', ...ID }]);
    expect(told(handle({ kind: 'tick' }, 50))).toEqual([]);
    expect(told(handle({ kind: 'tick' }, 50))).toEqual([{ kind: 'done', result: 'x', ...ID }]);
    expect(told(offer())).toEqual([{ kind: 'done', result: 'x', ...ID }]);
    hear({ kind: 'heard', ended: true, ...ID });
    expect(told(handle({ kind: 'tick' }, 100))).toEqual([]);
    expect(told(offer())).toEqual([{ kind: 'declined', reason: 'stale', ...ID }]);
  });

  test('is said to be under way, and is stopped when nobody answers that', () => {
    const { core, offer, handle, hear } = workerAt();
    offer();
    expect(told(handle({ kind: 'tick' }, 100))).toEqual([{ kind: 'progress', ...ID }]);
    hear({ kind: 'heard', ended: false, ...ID }, 800);
    handle({ kind: 'tick' }, 999);
    expect(core.numRunning).toBe(1);
    expect(kinds(handle({ kind: 'tick' }, 1))).toContain('stop');
    expect(core.numRunning).toBe(0);
  });

  test('gives way to a later try of its request, in whatever part, and a late earlier one is refused', () => {
    const { offer } = workerAt();
    offer({ role: 'decode' });
    expect(kinds(offer({ generation: 2 }))).toEqual(['stop', 'taken', 'run']);
    expect(told(offer({ generation: 1 }))).toEqual([{ kind: 'declined', reason: 'stale', ...ID, generation: 1 }]);
    expect(told(offer({ generation: 1, role: 'decode' }))).toMatchObject([{ kind: 'declined', reason: 'stale' }]);
  });

  test('that is cancelled stops, and does not begin when it comes after that', () => {
    const { offer, hear, handle } = workerAt();
    offer();
    expect(kinds(hear({ kind: 'cancel', request: 'r', generation: 0, role: null }))).toEqual(['stop']);
    expect(told(handle(result))).toEqual([]);
    hear({ kind: 'cancel', request: 's', generation: 3, role: 'prefill' });
    expect(told(offer({ request: 's', generation: 3 }))).toMatchObject([{ kind: 'declined', reason: 'stale' }]);
    expect(kinds(offer({ request: 's', generation: 3, role: 'decode' }))).toEqual(['taken', 'run']);
  });

  test('is declined beyond the slots, and by one that does not do that part; the queue is left meanwhile', () => {
    const { offer, handle } = workerAt(1);
    expect(kinds(offer())).toContain('queue');
    expect(told(offer({ request: 's' }))).toMatchObject([{ kind: 'declined', reason: 'busy' }]);
    expect(handle(result)).toContainEqual({ do: 'queue', open: true });
    const decoder = workerAt(1, 'decode');
    expect(told(decoder.offer())).toMatchObject([{ kind: 'declined', reason: 'role' }]);
    expect(kinds(decoder.handle({ kind: 'tick' }, 100))).not.toContain('queue');
  });
});

describe('leaving', () => {
  test('waits for what runs and for its result to be heard', () => {
    const { offer, handle, hear, core } = workerAt();
    offer();
    const first = handle({ kind: 'drain', limitMs: 10_000 });
    expect(first).toContainEqual({ do: 'queue', open: false });
    expect(first).toContainEqual({ do: 'tell-routers', message: expect.objectContaining({ kind: 'status', draining: true }) });
    expect(told(offer({ request: 's' }))).toMatchObject([{ kind: 'declined', reason: 'draining' }]);
    handle(result);
    expect(core.state).toBe('draining');
    expect(kinds(hear({ kind: 'heard', ended: true, ...ID }))).toEqual(['leave', 'left']);
    expect(offer()).toEqual([]);
  });

  test('gives back what runs too long', () => {
    const { offer, handle } = workerAt();
    offer();
    handle({ kind: 'drain', limitMs: 50 });
    expect(told(handle({ kind: 'tick' }, 50))).toMatchObject([{ kind: 'failed', permanent: false, ...ID }]);
  });

  test('at once waits for nobody', () => {
    const { offer, handle, core } = workerAt();
    offer();
    expect(kinds(handle({ kind: 'close' }))).toEqual(expect.arrayContaining(['stop', 'failed', 'leave', 'left']));
    expect(core.state).toBe('left');
  });
});

test('while the bus is away jobs go on, for as long as they may, and nothing is said', () => {
  const { core, offer, handle } = workerAt();
  offer();
  handle({ kind: 'disconnected' });
  expect(kinds(handle({ kind: 'tick' }, 2999))).toEqual([]);
  const back = handle({ kind: 'connected' });
  expect(told(back)).toEqual([{ kind: 'progress', ...ID }]);
  expect(kinds(back)).toContain('status');
  handle({ kind: 'disconnected' });
  expect(kinds(handle({ kind: 'tick' }, 3000))).toEqual(['stop']);
  expect(core.numRunning).toBe(0);
});
