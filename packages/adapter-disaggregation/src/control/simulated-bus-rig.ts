import { fullAttention, slidingWindow } from '@bufferwise/core-policy';
import type { TransferLayout } from '../transfer/transfer-layout.ts';
import { BlockAnnouncer, hashOfKey } from './block-announcer.ts';
import { type ControlMessage, checkMessage, decodeJson, encodeJson, type Job, type WorkerRole } from './control-message.ts';
import { controlTimes } from './control-times.ts';
import type { JobOutcome } from './job-table.ts';
import { type RouterAction, RouterCore } from './router-core.ts';
import { SessionGuard } from './session-guard.ts';
import { type WorkerAction, WorkerCore } from './worker-core.ts';

/** What happens to a worker, at virtual milliseconds. */
export interface WorkerFate {
  readonly atMs: number;
  readonly kind: 'crash' | 'drain';
  /** Until another run of it begins; null: never. */
  readonly backMs: number | null;
}

/** Everything that makes a run what it is: the same again gives the same run. Chances are percent. */
export interface BusScenario {
  readonly seed: number;
  readonly roles: readonly WorkerRole[];
  readonly slots: number;
  readonly numJobs: number;
  readonly jobEveryMs: number;
  readonly workMs: number;
  readonly loss: number;
  readonly duplication: number;
  readonly maxDelayMs: number;
  /** Chance that a job fails at a worker. */
  readonly failure: number;
  /** When everything works again as it should. */
  readonly calmAtMs: number;
  /** The bus is away, and all know it; what was on its way is lost. */
  readonly outages: readonly { readonly atMs: number; readonly forMs: number }[];
  /** One worker is cut off and does not know it. */
  readonly partitions: readonly { readonly worker: number; readonly atMs: number; readonly forMs: number }[];
  readonly fates: readonly { readonly worker: number; readonly fate: WorkerFate }[];
  readonly limitMs: number;
  readonly mostRetries: number;
  /** Whether receivers drop what comes twice before the protocol sees it. */
  readonly guarded: boolean;
}

export interface BusResult {
  /** By job. Undefined: never settled. */
  readonly outcomes: readonly (JobOutcome | undefined)[];
  /** Jobs that workers which live still hold at the end. */
  readonly held: number;
  readonly openJobs: number;
  /** Whatever must never be. */
  readonly faults: readonly string[];
  readonly generations: number;
  readonly messages: number;
}

export const BUS_TIMES = controlTimes({
  heartbeatMs: 200,
  expiryMs: 700,
  takeMs: 200,
  progressMs: 200,
  leaseMs: 1000,
  retryMs: 20,
  noWorkerMs: 2000,
  controlLostMs: 3000,
});
const TICK_MS = 20;
const POOL = { fingerprint: 'model', layoutHash: 'layout' };
const LAYOUT: TransferLayout = {
  tokensPerBlock: 4,
  groups: [
    { lifecycle: fullAttention(), buffers: [], pageBytes: 16 },
    { lifecycle: slidingWindow(8), buffers: [], pageBytes: 8 },
  ],
};

/** One run of a worker. */
interface Run {
  readonly id: string;
  readonly session: string;
  readonly startedMs: number;
  readonly core: WorkerCore;
  readonly announcer: BlockAnnouncer;
  readonly guard: SessionGuard;
  readonly running: Map<string, Job>;
  queueOpen: boolean;
  number: number;
  dead: boolean;
  /** Announced that it takes no more. */
  draining: boolean;
  left: boolean;
}

/** A router, workers, and a bus between them that is as bad as it is told to be, on a clock of their own. */
export function simulateBus(scenario: BusScenario): BusResult {
  let state = scenario.seed >>> 0;
  const chance = (below: number) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
  let now = 0;
  let messages = 0;
  let lastSettledMs = 0;
  const happens = (percent: number) => now < scenario.calmAtMs && chance(100) < percent;
  const events = new EventQueue();
  const at = (time: number, run: () => void) => events.push(time, run);
  const faults: string[] = [];

  const router = new RouterCore({
    layout: LAYOUT,
    pool: POOL,
    times: BUS_TIMES,
    nowMs: 0,
    routing: { mostRetries: scenario.mostRetries, directPrefillTokens: 8, localPrefillTokens: 4, weights: { fullTokens: 64 } },
  });
  const routerGuard = new SessionGuard();
  const routerMark = { from: 'router', session: 'r', startedMs: 0 };
  let routerNumber = 0;
  const runs = new Map<string, Run>();
  const everyRun: Run[] = [];
  const outcomes: (JobOutcome | undefined)[] = Array.from({ length: scenario.numJobs }, () => undefined);
  /** Parts of jobs that ended well, as `request generation role`. */
  const finished = new Map<string, string>();
  let generations = 0;
  /** Which life of the bus: what was sent in another never comes. */
  let busLife = 0;
  let busIsUp = true;

  const isCut = (id: string) =>
    scenario.partitions.some(({ worker, atMs, forMs }) => id === `w${worker}` && now >= atMs && now < atMs + forMs);

  /** Puts a message on its way, through the form it travels in. What a calm bus carries stays in order. */
  const carry = (from: string, deliver: (message: ControlMessage) => void, message: ControlMessage, marked: () => boolean) => {
    if (!busIsUp || (from !== 'router' && isCut(from))) return;
    messages++;
    const bytes = encodeJson(message);
    const life = busLife;
    for (let copies = happens(scenario.duplication) ? 2 : 1; copies > 0; copies--) {
      if (happens(scenario.loss)) continue;
      const delay = now < scenario.calmAtMs && scenario.maxDelayMs > 0 ? chance(scenario.maxDelayMs + 1) : 0;
      at(now + 1 + delay, () => {
        if (life === busLife && busIsUp && marked()) deliver(checkMessage(decodeJson(bytes)));
      });
    }
  };

  const passes = (guard: SessionGuard, mark: { from: string; session: string; startedMs: number; number: number }) =>
    scenario.guarded ? guard.isNew(mark) : guard.isLatest(mark);

  const toRouter = (run: Run, message: ControlMessage) => {
    const mark = { from: run.id, session: run.session, startedMs: run.startedMs, number: run.number++ };
    carry(
      run.id,
      (heard) => act(router.handle({ kind: 'message', from: run.id, session: run.session, message: heard }, now)),
      message,
      () => passes(routerGuard, mark),
    );
  };
  const toWorker = (find: () => Run | undefined, message: ControlMessage) => {
    const mark = { ...routerMark, number: routerNumber++ };
    let run: Run | undefined;
    carry(
      'router',
      (heard) => {
        if (run) runWorker(run, run.core.handle({ kind: 'message', from: 'router', message: heard }, now));
      },
      message,
      () => {
        run = find();
        return run !== undefined && !run.dead && !isCut(run.id) && passes(run.guard, mark);
      },
    );
  };

  const act = (actions: readonly RouterAction[]) => {
    for (const action of actions) {
      if (action.do === 'tell') toWorker(() => runs.get(action.worker), action.message);
      else if (action.do === 'tell-workers') for (const id of runs.keys()) toWorker(() => runs.get(id), action.message);
      else if (action.do === 'offer-prefill') {
        // Exactly one of those that listen, as a queue group does it.
        toWorker(() => {
          const open = [...runs.values()].filter((run) => run.queueOpen && !run.dead && !isCut(run.id));
          return open.length === 0 ? undefined : open[chance(open.length)];
        }, action.message);
      } else settle(action.request, action.outcome);
    }
  };
  const settle = (request: string, outcome: JobOutcome) => {
    const index = Number(request.slice(1));
    if (outcomes[index] !== undefined) faults.push(`${request} was settled twice`);
    outcomes[index] = outcome;
    lastSettledMs = now;
    if (outcome.kind !== 'done') return;
    generations += outcome.generation + 1;
    if (finished.get(`${request} ${outcome.generation} decode`) !== outcome.result)
      faults.push(`${request} has an answer that no worker gave`);
    if (outcome.prefill !== null && !finished.has(`${request} ${outcome.generation} prefill`))
      faults.push(`${request} was done without its prompt having been read`);
  };

  const runWorker = (run: Run, actions: readonly WorkerAction[]) => {
    for (const action of actions) {
      if (action.do === 'tell-routers' || action.do === 'tell') {
        if (action.message.kind === 'status' && action.message.draining) run.draining = true;
        toRouter(run, action.message);
      } else if (action.do === 'queue') run.queueOpen = action.open;
      else if (action.do === 'run') work(run, action.job);
      else if (action.do === 'stop') {
        if (!run.running.delete(nameOf(action.job))) faults.push(`${run.id} stopped what did not run`);
      } else {
        if (run.running.size > 0) faults.push(`${run.id} left while jobs ran`);
        run.left = run.dead = true;
        runs.delete(run.id);
      }
    }
  };
  const work = (run: Run, job: Job) => {
    const name = nameOf(job);
    if (run.draining) faults.push(`${run.id} took a job after it had announced to leave`);
    if (everyRun.some((other) => other === run && other.running.has(name))) faults.push(`${run.id} runs ${name} twice`);
    if (finished.has(name) && run.session === finished.get(`${name} by`)) faults.push(`${run.id} ran ${name} again`);
    if (run.running.size >= scenario.slots) faults.push(`${run.id} has more jobs than slots`);
    run.running.set(name, job);
    const end = () => {
      if (run.dead || !run.running.has(name)) return;
      // Who decodes waits for the pages.
      if (job.role === 'decode' && job.moves && !finished.has(`${job.request} ${job.generation} prefill`)) {
        at(now + 10, end);
        return;
      }
      run.running.delete(name);
      const failed = happens(scenario.failure);
      const result = `${job.body} by ${run.session}`;
      if (!failed) {
        finished.set(name, result);
        finished.set(`${name} by`, run.session);
        if (job.role === 'prefill') publishBlocks(run, job);
      }
      const outcome = failed
        ? ({ kind: 'failed', reason: 'out of luck', permanent: false } as const)
        : ({ kind: 'done', result } as const);
      runWorker(run, run.core.handle({ kind: 'ended', router: 'router', job, end: outcome }, now));
    };
    at(now + 1 + chance(scenario.workMs), end);
  };
  /** The worker has the prompt's blocks now, and forgets some that it had. */
  const publishBlocks = (run: Run, job: Job) => {
    const key = keyOf(Number(job.request.slice(1)) % 5, 0);
    for (const group of [0, 1]) {
      const common = { id: 0, groupId: group as never, tier: 0, medium: 'device' as const };
      run.announcer.push([
        {
          ...common,
          type: 'stored',
          lifecycle: LAYOUT.groups[group].lifecycle,
          scope: {} as never,
          parentKey: null,
          blocks: [{ key, tokens: [], priority: 0 }],
        },
      ]);
      if (chance(3) === 0) run.announcer.push([{ ...common, type: 'removed', keys: [keyOf(chance(5), 0)] }]);
    }
  };

  const start = (worker: number) => {
    const id = `w${worker}`;
    const announcer = new BlockAnnouncer(LAYOUT);
    const core = new WorkerCore({
      worker: { id, role: scenario.roles[worker], address: `at ${id}`, ...POOL, slots: scenario.slots },
      times: BUS_TIMES,
      nowMs: now,
      announcer,
    });
    const run: Run = {
      id,
      session: `${id}-${everyRun.length}`,
      startedMs: now,
      core,
      announcer,
      guard: new SessionGuard(),
      running: new Map(),
      queueOpen: false,
      number: 0,
      dead: false,
      draining: false,
      left: false,
    };
    runs.set(id, run);
    everyRun.push(run);
    runWorker(run, core.handle({ kind: 'load', load: { freePages: 1, active: 0, waiting: 0 } }, now));
    if (busIsUp) runWorker(run, core.handle({ kind: 'connected' }, now));
    const tick = () => {
      if (run.dead) return;
      runWorker(run, core.handle({ kind: 'tick' }, now));
      at(now + TICK_MS, tick);
    };
    tick();
  };

  scenario.roles.forEach((_, worker) => {
    at(chance(50), () => start(worker));
  });
  at(0, () => act(router.handle({ kind: 'connected' }, now)));
  const routerTick = () => {
    act(router.handle({ kind: 'tick' }, now));
    at(now + TICK_MS, routerTick);
  };
  at(0, routerTick);
  for (let index = 0; index < scenario.numJobs; index++)
    at(100 + index * scenario.jobEveryMs, () => {
      const request = `j${index}`;
      const blocks = [hashOfKey(keyOf(index % 5, 0)), hashOfKey(keyOf(index % 5, 1))];
      act(
        router.handle(
          { kind: 'submit', job: { request, blocks, numTokens: 10, body: `body of ${request}`, limitMs: scenario.limitMs } },
          now,
        ),
      );
    });
  for (const { worker, fate } of scenario.fates)
    at(fate.atMs, () => {
      const run = runs.get(`w${worker}`);
      if (run === undefined) return;
      if (fate.kind === 'drain') runWorker(run, run.core.handle({ kind: 'drain', limitMs: 500 }, now));
      else {
        run.dead = true;
        runs.delete(run.id);
      }
      if (fate.backMs !== null)
        at(now + fate.backMs, () => {
          const before = runs.get(`w${worker}`);
          if (before !== undefined) before.dead = true;
          start(worker);
        });
    });
  for (const { atMs, forMs } of scenario.outages) {
    at(atMs, () => {
      if (!busIsUp) return;
      busIsUp = false;
      busLife++;
      act(router.handle({ kind: 'disconnected' }, now));
      for (const run of runs.values()) runWorker(run, run.core.handle({ kind: 'disconnected' }, now));
      at(now + forMs, () => {
        busIsUp = true;
        at(now + chance(50), () => act(router.handle({ kind: 'connected' }, now)));
        for (const run of [...runs.values()])
          at(now + chance(50), () => {
            if (!run.dead) runWorker(run, run.core.handle({ kind: 'connected' }, now));
          });
      });
    });
  }

  // Long enough after the last thing that was done to it all, and that happened to a job, for every lease to have run out.
  const { outages, partitions, fates } = scenario;
  const quietMs = Math.max(
    100 + scenario.numJobs * scenario.jobEveryMs,
    scenario.calmAtMs,
    ...[...outages, ...partitions].map(({ atMs, forMs }) => atMs + forMs),
    ...fates.map(({ fate }) => fate.atMs + (fate.backMs ?? 0)),
  );
  const endMs = quietMs + scenario.limitMs + BUS_TIMES.controlLostMs;
  const isOver = () => now >= Math.max(quietMs, lastSettledMs) + 3 * BUS_TIMES.leaseMs && !outcomes.includes(undefined);
  for (let next = events.next(endMs); next !== undefined && !isOver(); next = events.next(endMs)) {
    now = next.at;
    next.run();
  }
  const live = [...runs.values()];
  for (const run of live) {
    for (const [group] of LAYOUT.groups.entries()) {
      const there = router.index.blocksOf(run.id, group).sort();
      const own = run.announcer.blocksOf(group).sort();
      if (there.join() !== own.join()) faults.push(`the index has ${there.length} blocks of ${run.id}, which has ${own.length}`);
    }
  }
  const known = router.registry.all().map(({ session }) => session);
  if (
    known.sort().join() !==
    live
      .map(({ session }) => session)
      .sort()
      .join()
  )
    faults.push(`known are ${known}, there are ${live.map(({ session }) => session)}`);
  return {
    outcomes,
    held: live.reduce((sum, run) => sum + run.running.size, 0),
    openJobs: router.jobs.size,
    faults,
    generations,
    messages,
  };
}

function nameOf({ request, generation, role }: { request: string; generation: number; role: string }): string {
  return `${request} ${generation} ${role}`;
}

function keyOf(prompt: number, block: number): Uint8Array {
  return new Uint8Array(32).fill(1 + prompt * 2 + block);
}

/** What happens when; in the order of time, then of pushing. */
class EventQueue {
  readonly #heap: { at: number; order: number; run: () => void }[] = [];
  #order = 0;

  push(at: number, run: () => void): void {
    const heap = this.#heap;
    heap.push({ at, order: this.#order++, run });
    for (let child = heap.length - 1; child > 0; ) {
      const parent = (child - 1) >> 1;
      if (!isBefore(heap[child], heap[parent])) break;
      [heap[child], heap[parent]] = [heap[parent], heap[child]];
      child = parent;
    }
  }

  /** Undefined when nothing is left before the end. */
  next(endMs: number): { at: number; run: () => void } | undefined {
    const heap = this.#heap;
    if (heap.length === 0 || heap[0].at > endMs) return undefined;
    const first = heap[0];
    const last = heap.pop() as (typeof heap)[number];
    if (heap.length > 0) {
      heap[0] = last;
      for (let parent = 0; ; ) {
        const [left, right] = [2 * parent + 1, 2 * parent + 2];
        let least = parent;
        if (left < heap.length && isBefore(heap[left], heap[least])) least = left;
        if (right < heap.length && isBefore(heap[right], heap[least])) least = right;
        if (least === parent) break;
        [heap[least], heap[parent]] = [heap[parent], heap[least]];
        parent = least;
      }
    }
    return first;
  }
}

function isBefore(a: { at: number; order: number }, b: { at: number; order: number }): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
