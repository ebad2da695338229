import { RetiredRequests } from '../link/retired-requests.ts';
import type { BlockAnnouncer } from './block-announcer.ts';
import {
  type ControlMessage,
  type DeclineReason,
  type Job,
  type JobId,
  type JobRole,
  MOST_REASON,
  type WorkerDescription,
  type WorkerLoad,
} from './control-message.ts';
import type { ControlTimes } from './control-times.ts';

/** How a job ended at a worker. */
export type JobEnd =
  | { readonly kind: 'done'; readonly result: string }
  | { readonly kind: 'failed'; readonly reason: string; readonly permanent: boolean };

/** What a worker is told. */
export type WorkerInput =
  | { readonly kind: 'message'; readonly from: string; readonly message: ControlMessage }
  | { readonly kind: 'ended'; readonly router: string; readonly job: JobId; readonly end: JobEnd }
  | { readonly kind: 'load'; readonly load: WorkerLoad }
  /** Takes no more jobs, and leaves when those that run have ended; what runs after `limitMs` is given back. */
  | { readonly kind: 'drain'; readonly limitMs: number }
  /** Leaves now; what runs is given back, and nobody is waited for. */
  | { readonly kind: 'close' }
  /** Nothing can be said or heard; and again. */
  | { readonly kind: 'disconnected' }
  | { readonly kind: 'connected' }
  | { readonly kind: 'tick' };

/** What a worker wants done, in this order. */
export type WorkerAction =
  | { readonly do: 'tell-routers'; readonly message: ControlMessage }
  | { readonly do: 'tell'; readonly router: string; readonly message: ControlMessage }
  /** Begins a job; `ended` follows, unless it is stopped. */
  | { readonly do: 'run'; readonly router: string; readonly job: Job }
  /** Ends a job that nobody wants any more; what it comes to is dropped. */
  | { readonly do: 'stop'; readonly router: string; readonly job: JobId; readonly reason: string }
  /** Whether jobs for any prefill worker are taken. */
  | { readonly do: 'queue'; readonly open: boolean }
  /** It is over. Once. */
  | { readonly do: 'left' };

interface WorkerJob {
  readonly router: string;
  readonly job: Job;
  /** Undefined while it runs. */
  end: JobEnd | undefined;
  heardMs: number;
  spokeMs: number;
}

/**
 * A worker on the control plane, without I/O. It takes a job once, whoever sends it how often; says that it is at it; says what came of it
 * until that was heard; and stops what nobody asks for any more.
 */
export class WorkerCore {
  readonly #worker: WorkerDescription;
  readonly #times: ControlTimes;
  readonly #announcer: BlockAnnouncer | undefined;
  readonly #jobs = new Map<string, WorkerJob>();
  /** By router and request, and by router, role and request: what was given up, and what has ended. It does not run again. */
  readonly #over = new RetiredRequests();
  #load: WorkerLoad = { freePages: 0, active: 0, waiting: 0 };
  #state: 'open' | 'draining' | 'left' = 'open';
  #drainedByMs = Number.POSITIVE_INFINITY;
  #queueOpen = false;
  #connected = false;
  #disconnectedMs: number;
  #saidMs = Number.NEGATIVE_INFINITY;
  #resyncedMs = Number.NEGATIVE_INFINITY;
  #resyncWanted = false;

  constructor(options: { worker: WorkerDescription; times: ControlTimes; nowMs: number; announcer?: BlockAnnouncer }) {
    this.#worker = options.worker;
    this.#times = options.times;
    this.#announcer = options.announcer;
    this.#disconnectedMs = options.nowMs;
  }

  /** Jobs that run. */
  get numRunning(): number {
    let count = 0;
    for (const { end } of this.#jobs.values()) if (end === undefined) count++;
    return count;
  }

  get state(): 'open' | 'draining' | 'left' {
    return this.#state;
  }

  handle(input: WorkerInput, nowMs: number): WorkerAction[] {
    if (this.#state === 'left') return [];
    const actions: WorkerAction[] = [];
    switch (input.kind) {
      case 'message':
        this.#hear(input.from, input.message, nowMs, actions);
        break;
      case 'ended':
        this.#ended(input.router, input.job, input.end, nowMs, actions);
        break;
      case 'load':
        this.#load = input.load;
        break;
      case 'drain':
        if (this.#state === 'open') this.#saidMs = Number.NEGATIVE_INFINITY;
        this.#state = 'draining';
        this.#drainedByMs = Math.min(this.#drainedByMs, nowMs + input.limitMs);
        break;
      case 'close':
        this.#state = 'draining';
        this.#giveBack(nowMs, actions);
        this.#jobs.clear();
        break;
      case 'disconnected':
        if (this.#connected) this.#disconnectedMs = nowMs;
        this.#connected = false;
        break;
      case 'connected':
        this.#connected = true;
        this.#saidMs = Number.NEGATIVE_INFINITY;
        // Nobody could ask for a job meanwhile, or hear what came of it.
        for (const job of this.#jobs.values()) {
          job.heardMs = nowMs;
          job.spokeMs = Number.NEGATIVE_INFINITY;
        }
        break;
      case 'tick':
        break;
    }
    this.#tend(nowMs, actions);
    return actions;
  }

  #hear(from: string, message: ControlMessage, nowMs: number, actions: WorkerAction[]): void {
    switch (message.kind) {
      case 'who':
        this.#saidMs = Number.NEGATIVE_INFINITY;
        break;
      case 'resync':
        this.#resyncWanted = true;
        break;
      case 'job':
        this.#offered(from, message, nowMs, actions);
        break;
      case 'cancel':
        this.#retire(from, message, 'it was given up', actions);
        break;
      case 'heard': {
        const known = this.#jobs.get(nameOf(from, message));
        if (known === undefined || known.job.generation !== message.generation) break;
        known.heardMs = nowMs;
        if (message.ended && known.end !== undefined) this.#forget(known);
        break;
      }
    }
  }

  #offered(router: string, job: Job, nowMs: number, actions: WorkerAction[]): void {
    const { request, generation, role } = job;
    const id: JobId = { request, generation, role };
    const tell = (message: ControlMessage) => actions.push({ do: 'tell', router, message });
    const decline = (reason: DeclineReason) => tell({ kind: 'declined', reason, ...id });
    const known = this.#jobs.get(nameOf(router, job));
    if (known?.job.generation === generation) {
      known.heardMs = nowMs;
      tell(known.end === undefined ? { kind: 'taken', ...id } : { ...known.end, ...id });
      return;
    }
    if (this.#over.has(`${router} ${request}`, generation) || this.#over.has(nameOf(router, job), generation))
      return void decline('stale');
    // A later try: nobody waits for the earlier ones, in whatever part.
    if (generation > 0)
      this.#retire(router, { request, generation: generation - 1, role: null }, 'a later try has begun', actions);
    if (this.#worker.role !== 'both' && this.#worker.role !== role) return void decline('role');
    if (this.#state !== 'open') return void decline('draining');
    if (this.numRunning >= this.#worker.slots) return void decline('busy');
    this.#jobs.set(nameOf(router, job), { router, job, end: undefined, heardMs: nowMs, spokeMs: nowMs });
    tell({ kind: 'taken', ...id });
    actions.push({ do: 'run', router, job });
  }

  #ended(router: string, id: JobId, end: JobEnd, nowMs: number, actions: WorkerAction[]): void {
    const known = this.#jobs.get(nameOf(router, id));
    if (known === undefined || known.job.generation !== id.generation || known.end !== undefined) return;
    known.end = end.kind === 'failed' ? { ...end, reason: end.reason.slice(0, MOST_REASON) } : end;
    known.heardMs = nowMs;
    this.#say(known, nowMs, actions);
  }

  /** What time alone brings. */
  #tend(nowMs: number, actions: WorkerAction[]): void {
    const { heartbeatMs, progressMs, leaseMs, controlLostMs } = this.#times;
    const isLost = !this.#connected && nowMs - this.#disconnectedMs >= controlLostMs;
    for (const job of [...this.#jobs.values()]) {
      const isSilent = isLost || (this.#connected && nowMs - job.heardMs >= leaseMs);
      if (isSilent && job.end === undefined) this.#stop(job, 'whoever asked for it is gone', actions);
      else if (isSilent) this.#forget(job);
      else if (this.#connected && nowMs - job.spokeMs >= progressMs) this.#say(job, nowMs, actions);
    }
    if (this.#state === 'draining' && nowMs >= this.#drainedByMs) this.#giveBack(nowMs, actions);
    this.#tendQueue(actions);
    if (this.#connected) {
      this.#announce(nowMs, actions);
      if (nowMs - this.#saidMs >= heartbeatMs) {
        this.#saidMs = nowMs;
        actions.push({ do: 'tell-routers', message: this.#status() });
      }
    }
    if (this.#state === 'draining' && this.#jobs.size === 0) {
      this.#state = 'left';
      actions.push({ do: 'tell-routers', message: { kind: 'leave' } }, { do: 'left' });
    }
  }

  #status(): ControlMessage {
    const numRunning = this.numRunning;
    const { freePages, active, waiting } = this.#load;
    return {
      kind: 'status',
      worker: this.#worker,
      load: { freePages, active: Math.max(active, numRunning), waiting },
      draining: this.#state !== 'open',
      nextBlocks: this.#announcer?.nextBlocks ?? 0,
    };
  }

  #announce(nowMs: number, actions: WorkerAction[]): void {
    if (this.#announcer === undefined) return;
    // However many ask: whoever missed something hears it all in one go.
    if (this.#resyncWanted && nowMs - this.#resyncedMs >= this.#times.heartbeatMs) {
      this.#resyncWanted = false;
      this.#resyncedMs = nowMs;
      this.#announcer.beginAnew();
    }
    for (let message = this.#announcer.take(); message !== undefined; message = this.#announcer.take())
      actions.push({ do: 'tell-routers', message });
  }

  #tendQueue(actions: WorkerAction[]): void {
    const open = this.#worker.role !== 'decode' && this.#state === 'open' && this.numRunning < this.#worker.slots;
    if (open === this.#queueOpen) return;
    this.#queueOpen = open;
    actions.push({ do: 'queue', open });
  }

  #giveBack(nowMs: number, actions: WorkerAction[]): void {
    for (const known of this.#jobs.values()) {
      if (known.end !== undefined) continue;
      actions.push({ do: 'stop', router: known.router, job: known.job, reason: 'the worker leaves' });
      known.end = { kind: 'failed', reason: 'the worker left before it was done', permanent: false };
      known.heardMs = nowMs;
      this.#say(known, nowMs, actions);
    }
  }

  #say(known: WorkerJob, nowMs: number, actions: WorkerAction[]): void {
    const { request, generation, role } = known.job;
    const id: JobId = { request, generation, role };
    known.spokeMs = nowMs;
    actions.push({
      do: 'tell',
      router: known.router,
      message: known.end === undefined ? { kind: 'progress', ...id } : { ...known.end, ...id },
    });
  }

  #retire(
    router: string,
    { request, generation, role }: { request: string; generation: number; role: JobRole | null },
    reason: string,
    actions: WorkerAction[],
  ): void {
    this.#over.add(role === null ? `${router} ${request}` : nameOf(router, { request, role }), generation);
    for (const each of role === null ? (['prefill', 'decode'] as const) : [role]) {
      const known = this.#jobs.get(nameOf(router, { request, role: each }));
      if (known === undefined || known.job.generation > generation) continue;
      if (known.end === undefined) this.#stop(known, reason, actions);
      else this.#forget(known);
    }
  }

  #stop(known: WorkerJob, reason: string, actions: WorkerAction[]): void {
    actions.push({ do: 'stop', router: known.router, job: known.job, reason });
    this.#forget(known);
  }

  #forget({ router, job }: WorkerJob): void {
    this.#jobs.delete(nameOf(router, job));
    this.#over.add(nameOf(router, job), job.generation);
  }
}

function nameOf(router: string, { request, role }: { readonly request: string; readonly role: string }): string {
  return `${router} ${role} ${request}`;
}
