import { fullAttention, slidingWindow } from '@bufferwise/core-policy';
import { describe, expect, test } from 'vitest';
import type { ControlMessage, WorkerDescription, WorkerLoad } from './control-message.ts';
import { controlTimes } from './control-times.ts';
import type { JobRequest } from './job-table.ts';
import { type RouterAction, RouterCore, type RouterInput, type RoutingOptions } from './router-core.ts';

const TIMES = controlTimes({ heartbeatMs: 100, expiryMs: 500, takeMs: 5000, leaseMs: 15_000, controlLostMs: 60_000 });
const POOL = { fingerprint: 'f', layoutHash: 'l' };
const layout = {
  tokensPerBlock: 4,
  groups: [fullAttention(), slidingWindow(8)].map((lifecycle) => ({ lifecycle, buffers: [], pageBytes: 1 })),
};
const BLOCKS = Array.from({ length: 200 }, (_, i) => i.toString(16).padStart(16, '0'));
const JOB: JobRequest = { request: 'r', blocks: BLOCKS, numTokens: 800, body: 'b', limitMs: 100_000 };

function routerWith(routing: RoutingOptions = {}) {
  let nowMs = 0;
  const core = new RouterCore({ layout, pool: POOL, times: TIMES, nowMs, routing });
  const handle = (input: RouterInput, afterMs = 0) => {
    nowMs += afterMs;
    return core.handle(input, nowMs);
  };
  const hear = (from: string, message: ControlMessage, session = `${from} 0`) =>
    handle({ kind: 'message', from, session, message });
  const status = (
    worker: Partial<WorkerDescription> & { id: string },
    { load = {}, session, draining = false, nextBlocks = 0, from = worker.id }: StatusOptions = {},
  ) =>
    hear(
      from,
      {
        kind: 'status',
        worker: { role: 'both', address: `at ${worker.id}`, slots: 8, ...POOL, ...worker },
        load: { freePages: 1, active: 0, waiting: 0, ...load },
        draining,
        nextBlocks,
      },
      session,
    );
  const has = (worker: string, numBlocks: number) =>
    hear(worker, {
      kind: 'blocks',
      number: 0,
      fresh: true,
      changes: [0, 1].map((group) => ['+', group, BLOCKS.slice(0, numBlocks)] as const),
    });
  const submit = (request = 'r', job: Partial<JobRequest> = {}) => handle({ kind: 'submit', job: { ...JOB, request, ...job } });
  handle({ kind: 'connected' });
  return { core, handle, hear, status, has, submit };
}

interface StatusOptions {
  readonly load?: Partial<WorkerLoad>;
  readonly session?: string;
  readonly draining?: boolean;
  readonly nextBlocks?: number;
  readonly from?: string;
}

/** `[to whom, kind, role]` of what is sent. */
const sent = (actions: readonly RouterAction[]) =>
  actions.flatMap((action) => {
    if (action.do === 'settle') return [];
    const to = action.do === 'tell' ? action.worker : action.do === 'offer-prefill' ? 'any' : 'all';
    return [[to, action.message.kind, ...('role' in action.message ? [action.message.role] : [])].join(' ')];
  });

describe('a request goes', () => {
  test('to the worker that it names, whoever else has more of it, and waits while that one cannot', () => {
    const { status, has, submit, handle } = routerWith();
    status({ id: 'reads', role: 'prefill' });
    for (const id of ['a', 'b']) status({ id, role: 'decode' });
    has('a', 100);
    expect(sent(submit('r1', { decodeAt: 'b' }))).toEqual(['b job decode']);
    expect(sent(submit('r2'))).toEqual(['a job decode']);
    status({ id: 'b', role: 'decode' }, { draining: true });
    expect(sent(submit('r3', { decodeAt: 'b' }))).toEqual([]);
    status({ id: 'b', role: 'decode' });
    expect(sent(handle({ kind: 'tick' }, TIMES.retryMs))).toContain('b job decode');
  });

  test('nowhere, and fails, when the worker that it names leaves, whoever else is there', () => {
    const { status, submit, handle } = routerWith();
    const heartbeat = () => {
      status({ id: 'reads', role: 'prefill' });
      status({ id: 'a', role: 'decode' });
      status({ id: 'b', role: 'decode' }, { draining: true });
    };
    heartbeat();
    submit('r1', { decodeAt: 'b' });
    const settled: RouterAction[] = [];
    for (let ms = 0; ms <= TIMES.noWorkerMs + TIMES.retryMs; ms += TIMES.heartbeatMs) {
      heartbeat();
      settled.push(...handle({ kind: 'tick' }, TIMES.heartbeatMs).filter((action) => action.do === 'settle'));
    }
    expect(settled).toMatchObject([
      {
        request: 'r1',
        outcome: { kind: 'failed', error: { code: 'no-worker', message: expect.stringContaining('only b may') } },
      },
    ]);
  });

  test('to the worker that has most of it, unless that one is too busy', () => {
    const { status, has, submit } = routerWith({ weights: { fullTokens: 500 }, localPrefillTokens: 1000 });
    for (const id of ['a', 'b', 'c']) status({ id });
    has('a', 100);
    has('b', 50);
    expect(sent(submit('r1'))).toEqual(['a job decode']);
    status({ id: 'a' }, { load: { active: 1, waiting: 1 } });
    expect(sent(submit('r2'))).toEqual(['b job decode']);
    // What was given since the last heartbeat counts: nobody has said more.
    expect(sent(submit('r3'))).toEqual(['a job decode']);
    expect(sent(submit('r4', { blocks: [] }))).toEqual(['c job decode']);
  });

  test('past workers that leave, are of another model or layout, are full, or only prefill', () => {
    const { status, submit } = routerWith();
    status({ id: 'leaves' }, { draining: true });
    status({ id: 'model', fingerprint: 'g' });
    status({ id: 'layout', layoutHash: 'm' });
    status({ id: 'reader', role: 'prefill' });
    expect(sent(submit('r1'))).toEqual([]);
    status({ id: 'good', slots: 1 });
    expect(sent(submit('r2'))).toEqual(['good job decode']);
    expect(sent(submit('r3'))).toEqual([]);
  });

  const taken = { kind: 'taken', request: 'r', generation: 0, role: 'decode' } as const;

  test('for its prompt to whoever is free, or by name to one that has enough of it', () => {
    const any = routerWith();
    any.status({ id: 'd', role: 'decode' });
    for (const id of ['p1', 'p2']) any.status({ id, role: 'prefill' });
    any.submit();
    expect(sent(any.hear('d', taken))).toEqual(['any job prefill']);
    const named = routerWith();
    named.status({ id: 'd', role: 'decode' });
    for (const id of ['p1', 'p2']) named.status({ id, role: 'prefill' });
    named.has('p2', 64);
    named.submit();
    expect(sent(named.hear('d', taken))).toEqual(['p2 job prefill']);
  });

  test('to one worker alone when it does both and lacks little, or there is nobody to help', () => {
    const { status, has, submit, hear } = routerWith({ localPrefillTokens: 100, weights: { fullTokens: 1 } });
    status({ id: 'b' });
    submit('r1');
    expect(sent(hear('b', { ...taken, request: 'r1' }))).toEqual([]);
    status({ id: 'p', role: 'prefill' });
    submit('r2');
    expect(sent(hear('b', { ...taken, request: 'r2' }))).toEqual(['p job prefill']);
    has('b', 180);
    submit('r3');
    expect(sent(hear('b', { ...taken, request: 'r3' }))).toEqual([]);
  });
});

describe('a worker', () => {
  test('that is started anew, leaves or falls silent does nothing any more: its jobs are offered again at once', () => {
    for (const end of ['restart', 'leave', 'silence'] as const) {
      const { status, submit, hear, handle, core } = routerWith({ localPrefillTokens: 1000 });
      status({ id: 'a' });
      submit();
      hear('a', { kind: 'taken', request: 'r', generation: 0, role: 'decode' });
      if (end === 'restart') status({ id: 'a' }, { session: 'a 1' });
      else if (end === 'leave') hear('a', { kind: 'leave' });
      else {
        handle({ kind: 'tick' }, 499);
        expect(core.registry.all()).toHaveLength(1);
        handle({ kind: 'tick' }, 1);
        expect(core.registry.all()).toEqual([]);
      }
      status({ id: 'b' });
      const again = sent(handle({ kind: 'tick' }, 200)).filter((each) => each.endsWith('job decode'));
      // One that was started anew may have it again.
      expect(again, end).toEqual([end === 'restart' ? expect.stringMatching(/^[ab] /) : 'b job decode']);
      expect(core.jobs.size).toBe(1);
    }
  });

  test('could say nothing while the bus was away: it has a whole expiry when that is back', () => {
    const { status, handle, core } = routerWith();
    status({ id: 'a' });
    handle({ kind: 'disconnected' });
    handle({ kind: 'tick' }, 10_000);
    expect(sent(handle({ kind: 'connected' }))).toEqual(['all who']);
    handle({ kind: 'tick' }, 499);
    expect(core.registry.all()).toHaveLength(1);
    handle({ kind: 'tick' }, 1);
    expect(core.registry.all()).toHaveLength(0);
  });

  test('is not spoken for by another, nor by an earlier run of itself', () => {
    const { status, hear, core } = routerWith();
    status({ id: 'a' }, { from: 'stranger' });
    expect(core.registry.all()).toEqual([]);
    status({ id: 'a' }, { session: 'a 1' });
    hear('a', { kind: 'leave' }, 'a 0');
    expect(core.registry.all()).toHaveLength(1);
  });

  test('that announced what was missed is asked to begin anew, once a heartbeat', () => {
    const { status, handle } = routerWith();
    expect(sent(status({ id: 'a' }, { nextBlocks: 3 }))).toEqual(['a resync']);
    expect(sent(status({ id: 'a' }, { nextBlocks: 3 }))).toEqual([]);
    handle({ kind: 'tick' }, 100);
    expect(sent(status({ id: 'a' }, { nextBlocks: 4 }))).toEqual(['a resync']);
  });

  test('is one of so many that are noticed', () => {
    const { status, core } = routerWith({ mostWorkers: 2 });
    for (const id of ['a', 'b', 'c']) status({ id });
    expect(core.registry.all().map(({ id }) => id)).toEqual(['a', 'b']);
  });
});

test('while nobody is there, somebody is asked for', () => {
  const { handle } = routerWith();
  expect(sent(handle({ kind: 'tick' }, 99))).toEqual([]);
  expect(sent(handle({ kind: 'tick' }, 1))).toEqual(['all who']);
});
