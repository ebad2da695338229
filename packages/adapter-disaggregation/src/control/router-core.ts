import type { TransferLayout } from '../transfer/transfer-layout.ts';
import { type Candidate, chooseWorker, DEFAULT_ROUTING_WEIGHTS, type RoutingWeights } from './choose-worker.ts';
import type { ControlMessage, JobRole } from './control-message.ts';
import type { ControlTimes } from './control-times.ts';
import { type JobRequest, JobTable, type JobTableAction, type NoPlacement, type Placement } from './job-table.ts';
import { PrefixIndex } from './prefix-index.ts';
import { type KnownWorker, WorkerRegistry } from './worker-registry.ts';

export interface RoutingOptions {
  /** Default: a full worker counts as 4096 tokens. */
  readonly weights?: Partial<RoutingWeights>;
  /**
   * A worker that does both computes a prompt by itself when it lacks no more than this of it, and otherwise leaves that to another, if
   * there is one. Tokens. Default 256.
   */
  readonly localPrefillTokens?: number;
  /** A prefill worker is asked by name when it saves at least this much; else any of them takes the job. Tokens. Default 256. */
  readonly directPrefillTokens?: number;
  /** Times that a job is tried again after a failure. Default 5. */
  readonly mostRetries?: number;
  /** Workers that are noticed. Default 1024. */
  readonly mostWorkers?: number;
  /** Blocks that the index of prefixes has room for, each once for each worker that has it. Default 2^20. */
  readonly mostBlocks?: number;
}

/** What a router is told. */
export type RouterInput =
  | { readonly kind: 'message'; readonly from: string; readonly session: string; readonly message: ControlMessage }
  | { readonly kind: 'submit'; readonly job: JobRequest }
  | { readonly kind: 'cancel'; readonly request: string }
  | { readonly kind: 'disconnected' }
  | { readonly kind: 'connected' }
  | { readonly kind: 'close'; readonly code: 'control-closed' | 'control-lost' }
  | { readonly kind: 'tick' };

export type RouterAction = JobTableAction | { readonly do: 'tell-workers'; readonly message: ControlMessage };

/**
 * One who routes, without I/O: knows which workers are there, what they have and how busy they are, gives jobs to them and sees to it that
 * each job ends.
 */
export class RouterCore {
  readonly registry: WorkerRegistry;
  readonly index: PrefixIndex;
  readonly jobs: JobTable;
  readonly #times: ControlTimes;
  readonly #weights: RoutingWeights;
  readonly #localPrefillTokens: number;
  readonly #directPrefillTokens: number;
  /** By worker: when it was last asked to begin anew with what it has. */
  readonly #resyncs = new Map<string, number>();
  #connected = false;
  #askedMs = Number.NEGATIVE_INFINITY;

  constructor(options: {
    layout: TransferLayout;
    pool: { readonly fingerprint: string; readonly layoutHash: string };
    times: ControlTimes;
    nowMs: number;
    routing?: RoutingOptions;
  }) {
    const { layout, pool, times, nowMs, routing = {} } = options;
    const { mostRetries = 5, mostWorkers = 1024, mostBlocks = 1 << 20 } = routing;
    this.#times = times;
    this.#weights = { ...DEFAULT_ROUTING_WEIGHTS, ...routing.weights };
    this.#localPrefillTokens = routing.localPrefillTokens ?? 256;
    this.#directPrefillTokens = routing.directPrefillTokens ?? 256;
    this.registry = new WorkerRegistry({ pool, expiryMs: times.expiryMs, mostWorkers });
    this.index = new PrefixIndex({ layout, mostBlocks });
    this.jobs = new JobTable({ times, mostRetries, nowMs, place: (job, avoid) => this.#place(job, avoid) });
  }

  /** Whether the bus is there, as far as is known. */
  get connected(): boolean {
    return this.#connected;
  }

  /** Throws {ControlError} `invalid-job` for a `submit` of a name that is taken; then nothing has changed. */
  handle(input: RouterInput, nowMs: number): RouterAction[] {
    switch (input.kind) {
      case 'message':
        return this.#hear(input.from, input.session, input.message, nowMs);
      case 'submit':
        return this.jobs.submit(input.job, nowMs);
      case 'cancel':
        return this.jobs.cancel(input.request);
      case 'disconnected':
        this.#connected = false;
        this.jobs.disconnected(nowMs);
        return [];
      case 'connected':
        this.#connected = true;
        this.#askedMs = nowMs;
        this.registry.excuse(nowMs);
        return [{ do: 'tell-workers', message: { kind: 'who' } }, ...this.jobs.connected(nowMs)];
      case 'close':
        return this.jobs.close(input.code);
      case 'tick':
        return this.#tick(nowMs);
    }
  }

  #tick(nowMs: number): RouterAction[] {
    const actions: RouterAction[] = [];
    if (this.#connected) {
      for (const worker of this.registry.expire(nowMs)) {
        this.#forget(worker);
        actions.push(...this.jobs.gone(worker, 'fell silent', nowMs));
      }
      // The first question may have been lost, and those who would answer know no other reason to speak up soon.
      if (this.registry.all().length === 0 && nowMs - this.#askedMs >= this.#times.heartbeatMs) {
        this.#askedMs = nowMs;
        actions.push({ do: 'tell-workers', message: { kind: 'who' } });
      }
    }
    return [...actions, ...this.jobs.tick(nowMs)];
  }

  #hear(from: string, session: string, message: ControlMessage, nowMs: number): RouterAction[] {
    switch (message.kind) {
      case 'status': {
        // Nobody speaks for another.
        if (message.worker.id !== from) return [];
        const how = this.registry.heard(session, message, nowMs);
        if (how === 'ignored') return [];
        const actions: RouterAction[] = how === 'restarted' ? this.jobs.gone(from, 'was started anew', nowMs) : [];
        if (this.registry.get(from)?.fits) {
          this.index.open(from, session);
          if (this.index.isBehind(from, session, message.nextBlocks)) actions.push(...this.#askForBlocks(from, nowMs));
        }
        return actions;
      }
      case 'leave':
        if (!this.registry.left(from, session)) return [];
        this.#forget(from);
        return this.jobs.gone(from, 'left', nowMs);
      case 'blocks':
        this.index.take(from, session, message);
        return [];
      case 'taken':
      case 'declined':
      case 'progress':
      case 'done':
      case 'failed':
        return this.jobs.hear(from, message, nowMs);
      default:
        return [];
    }
  }

  #askForBlocks(worker: string, nowMs: number): RouterAction[] {
    if (nowMs - (this.#resyncs.get(worker) ?? Number.NEGATIVE_INFINITY) < this.#times.heartbeatMs) return [];
    this.#resyncs.set(worker, nowMs);
    return [{ do: 'tell', worker, message: { kind: 'resync' } }];
  }

  #forget(worker: string): void {
    this.index.forget(worker);
    this.#resyncs.delete(worker);
  }

  /** Who would do a job now; or why nobody can. */
  #place(job: JobRequest, avoid: ReadonlySet<string>): Placement | NoPlacement {
    const decoders = this.#candidates('decode', job, avoid).filter(({ worker }) => mayDecode(worker, job));
    const decode = chooseWorker(decoders, 'decode', job.request, this.#weights);
    if (decode === undefined) return this.#nobody('decode', job);
    const { worker, reuse } = decode;
    const target = { worker: worker.id, address: worker.address };
    const missing = job.numTokens - reuse.endpoint;
    if (worker.role === 'both' && missing <= this.#localPrefillTokens) return { decode: target, prefill: null };
    const others = this.#candidates('prefill', job, avoid).filter((other) => other.worker.id !== worker.id);
    const prefill = chooseWorker(others, 'prefill', job.request, this.#weights);
    if (prefill === undefined) return worker.role === 'both' ? { decode: target, prefill: null } : this.#nobody('prefill', job);
    // One who does both hears the queue as well, and is not to move a request to itself.
    const byName = prefill.reuse.endpoint >= this.#directPrefillTokens || worker.role === 'both';
    return { decode: target, prefill: byName ? { kind: 'one', worker: prefill.worker.id } : { kind: 'any' } };
  }

  /** Those that have room, as far as is known here. */
  #candidates(role: JobRole, { blocks, numTokens }: JobRequest, avoid: ReadonlySet<string>): Candidate[] {
    return this.registry
      .candidates(role)
      .map((worker) => ({ worker, given: this.jobs.given(worker.id) }))
      .filter(({ worker, given }) => !avoid.has(worker.id) && given < worker.slots)
      .map(({ worker, given }) => ({ worker, given, reuse: this.index.reuse(worker.id, blocks, numTokens) }));
  }

  /** Where somebody could do it at another time, all are busy. One who is to decode and leaves will not, whoever else is there. */
  #nobody(role: JobRole, job: JobRequest): NoPlacement {
    const able = this.registry.candidates(role).filter((worker) => role !== 'decode' || mayDecode(worker, job));
    const named = role === 'decode' && job.decodeAt !== undefined ? `, which only ${job.decodeAt} may` : '';
    const all = this.registry.all();
    const others = all.filter(({ fits }) => !fits).length;
    const draining = all.filter((worker) => worker.fits && worker.draining).length;
    return {
      lack: able.length > 0 ? 'busy' : 'worker',
      why: `there was no worker that could ${role}${named} (known: ${all.length}, of which ${others} of another model or layout, ${draining} leaving)`,
    };
  }
}

function mayDecode({ id }: KnownWorker, { decodeAt }: JobRequest): boolean {
  return decodeAt === undefined || id === decodeAt;
}
