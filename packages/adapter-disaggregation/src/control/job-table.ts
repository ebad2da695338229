import { ControlError, type ControlErrorCode } from './control-error.ts';
import type { ControlMessage, JobRole } from './control-message.ts';
import type { ControlTimes } from './control-times.ts';

/** What somebody wants done. */
export interface JobRequest {
  /** Names it: 1 to 255 bytes. One job at a time has it. */
  readonly request: string;
  /** Hashes of the prompt's whole blocks, in order: what workers are compared by. */
  readonly blocks: readonly string[];
  /** Tokens of the prompt. */
  readonly numTokens: number;
  /** For the workers, of no meaning here. */
  readonly body: string;
  /** The worker that is to decode. Default: whoever is best. */
  readonly decodeAt?: string;
  /** It fails when it is not done by then. Milliseconds from now on. */
  readonly limitMs: number;
}

/** How a job ended. */
export type JobOutcome =
  | {
      readonly kind: 'done';
      readonly result: string;
      readonly generation: number;
      /** Generations that it took, 1 or more. */
      readonly tries: number;
      /** Who wrote on. */
      readonly decode: string;
      /** Who read the prompt, when that was somebody else. */
      readonly prefill: string | null;
    }
  | { readonly kind: 'failed'; readonly error: ControlError };

/** Who is to do a job. */
export interface Placement {
  readonly decode: { readonly worker: string; readonly address: string };
  /** Null: whoever decodes reads the prompt as well. */
  readonly prefill: { readonly kind: 'one'; readonly worker: string } | { readonly kind: 'any' } | null;
}

export type JobTableAction =
  | { readonly do: 'tell'; readonly worker: string; readonly message: ControlMessage }
  /** One of those that prefill takes it. */
  | { readonly do: 'offer-prefill'; readonly message: ControlMessage & { kind: 'job' } }
  /** The caller hears how it ended. Once a job. */
  | { readonly do: 'settle'; readonly request: string; readonly outcome: JobOutcome };

/** Chooses workers for a job, without those that are to be avoided; or says why it cannot, and whether waiting helps. */
export type Placer = (job: JobRequest, avoid: ReadonlySet<string>) => Placement | NoPlacement;

export interface NoPlacement {
  /** `busy`: there are workers, all of them full or avoided for now. */
  readonly lack: 'busy' | 'worker';
  readonly why: string;
}

interface Part {
  /** Null while it is not known: a job for any of them. */
  worker: string | null;
  readonly target: NonNullable<Placement['prefill']>;
  state: 'waiting' | 'offered' | 'taken' | 'done';
  heardMs: number;
}

/** Names whose last generation is remembered; those used longest ago are forgotten first. */
const MOST_NAMES = 1 << 14;

interface OpenJob {
  readonly job: JobRequest;
  readonly firstGeneration: number;
  readonly deadlineMs: number;
  generation: number;
  /** Null while no worker is asked. */
  placement: Placement | null;
  decode: Part | null;
  prefill: Part | null;
  retryAtMs: number;
  failures: number;
  lastReason: string;
  /** Since when there has been no worker; null while there is one. */
  noWorkerSinceMs: number | null;
  readonly avoid: Map<string, number>;
}

/** What a worker says of a job. */
export type JobReply = Extract<ControlMessage, { role: JobRole; generation: number }>;

/**
 * The jobs of one who routes, without I/O. Each ends once: with an answer, or with an error that says why. Whoever fails to answer is asked
 * no more; the job is offered anew under the next generation, a bounded number of times, and what comes of an earlier one counts no more.
 */
export class JobTable {
  readonly #times: ControlTimes;
  readonly #mostRetries: number;
  readonly #place: Placer;
  readonly #jobs = new Map<string, OpenJob>();
  /** By name of a job that is over: its last generation. Whoever has the name next goes on from there. */
  readonly #lastGenerations = new Map<string, number>();
  #connected = false;
  #disconnectedMs: number;

  constructor(options: { times: ControlTimes; mostRetries: number; place: Placer; nowMs: number }) {
    this.#times = options.times;
    this.#mostRetries = options.mostRetries;
    this.#place = options.place;
    this.#disconnectedMs = options.nowMs;
  }

  get size(): number {
    return this.#jobs.size;
  }

  /** Parts of jobs that a worker was given and that have not ended. */
  given(worker: string): number {
    let count = 0;
    for (const { decode, prefill } of this.#jobs.values())
      for (const part of [decode, prefill]) if (part?.worker === worker && part.state !== 'done') count++;
    return count;
  }

  /** @throws {ControlError} `invalid-job` when there is one of that name */
  submit(job: JobRequest, nowMs: number): JobTableAction[] {
    if (this.#jobs.has(job.request))
      throw new ControlError(
        'invalid-job',
        `a job ${JSON.stringify(job.request)} is under way; wait for it, or choose another name`,
      );
    const last = this.#lastGenerations.get(job.request) ?? -1;
    this.#jobs.set(job.request, {
      job,
      firstGeneration: last + 1,
      deadlineMs: nowMs + job.limitMs,
      generation: last,
      placement: null,
      decode: null,
      prefill: null,
      retryAtMs: nowMs,
      failures: 0,
      lastReason: 'nothing was tried yet',
      noWorkerSinceMs: null,
      avoid: new Map(),
    });
    return this.tick(nowMs);
  }

  /** Nobody waits for it any more; it is not settled. */
  cancel(request: string): JobTableAction[] {
    const open = this.#jobs.get(request);
    if (open === undefined) return [];
    this.#over(open);
    return cancels(open);
  }

  hear(worker: string, message: JobReply, nowMs: number): JobTableAction[] {
    const open = this.#jobs.get(message.request);
    const part = open?.[message.role];
    const { kind, request, generation, role } = message;
    const isResult = kind === 'done' || kind === 'failed';
    const actions: JobTableAction[] = [];
    // Heard even when it is of no use: it is not to be said for ever.
    if (isResult) actions.push(tell(worker, { kind: 'heard', ended: true, request, generation, role }));
    const isWanted =
      open !== undefined &&
      part &&
      part.state !== 'waiting' &&
      open.generation === generation &&
      (part.worker ?? worker) === worker;
    if (!isWanted) {
      if (kind === 'taken' || kind === 'progress') actions.push(tell(worker, { kind: 'cancel', request, generation, role }));
      return actions;
    }
    if (part.state === 'done') return actions;
    part.heardMs = nowMs;
    if (kind === 'declined') {
      // The one who was asked does nothing for it; another may.
      open.avoid.set(worker, nowMs + this.#times.heartbeatMs);
      return [...actions, ...this.#retry(open, `${worker} took no ${role} (${message.reason})`, nowMs)];
    }
    part.worker = worker;
    if (kind === 'failed') {
      if (message.permanent)
        return [
          ...actions,
          ...this.#fail(open, 'job-refused', `${worker} refused it: ${message.reason}; no other worker was asked`),
        ];
      this.#avoid(open, worker, role, nowMs + this.#times.heartbeatMs);
      return [...actions, ...this.#failedOnce(open, `${worker} failed: ${message.reason}`, nowMs)];
    }
    if (kind === 'done') {
      part.state = 'done';
      if (role === 'decode') return [...actions, ...this.#done(open, worker, message.result)];
      return actions;
    }
    part.state = 'taken';
    if (kind === 'progress') actions.push(tell(worker, { kind: 'heard', ended: false, request, generation, role }));
    return [...actions, ...this.#offerPrefill(open, nowMs)];
  }

  /** Not asked for a while: who failed, unless no other may do it; and who was to send what did not come. */
  #avoid(open: OpenJob, worker: string, role: JobRole, untilMs: number): void {
    if (worker !== open.job.decodeAt) open.avoid.set(worker, untilMs);
    const sender = role === 'decode' ? (open.prefill?.worker ?? null) : null;
    if (sender !== null) open.avoid.set(sender, untilMs);
  }

  /** A worker is gone, or has been started anew: it does nothing any more of what it was asked. */
  gone(worker: string, why: string, nowMs: number): JobTableAction[] {
    const actions: JobTableAction[] = [];
    for (const open of [...this.#jobs.values()])
      if ([open.decode, open.prefill].some((part) => part?.worker === worker && part.state !== 'done'))
        actions.push(...this.#failedOnce(open, `${worker} ${why}`, nowMs));
    return actions;
  }

  disconnected(nowMs: number): void {
    if (this.#connected) this.#disconnectedMs = nowMs;
    this.#connected = false;
  }

  connected(nowMs: number): JobTableAction[] {
    this.#connected = true;
    for (const { decode, prefill } of this.#jobs.values()) for (const part of [decode, prefill]) if (part) part.heardMs = nowMs;
    return this.tick(nowMs);
  }

  tick(nowMs: number): JobTableAction[] {
    const actions: JobTableAction[] = [];
    for (const open of [...this.#jobs.values()]) actions.push(...this.#tend(open, nowMs));
    return actions;
  }

  /** Ends all jobs. */
  close(code: 'control-closed' | 'control-lost'): JobTableAction[] {
    const why = code === 'control-closed' ? 'it was closed here before the job was done' : 'the connection was ended';
    return [...this.#jobs.values()].flatMap((open) => this.#fail(open, code, `${why}; ask again elsewhere`));
  }

  #tend(open: OpenJob, nowMs: number): JobTableAction[] {
    const { takeMs, leaseMs, controlLostMs } = this.#times;
    if (nowMs >= open.deadlineMs)
      return this.#fail(open, 'job-timeout', `it was not done within ${open.job.limitMs} ms: ${open.lastReason}`);
    if (!this.#connected) {
      const awayMs = nowMs - this.#disconnectedMs;
      if (awayMs < controlLostMs) return [];
      return this.#fail(
        open,
        'control-lost',
        `the control plane has been away for ${controlLostMs} ms; ask again when it is back`,
      );
    }
    if (open.placement === null) return nowMs >= open.retryAtMs ? this.#begin(open, nowMs) : [];
    for (const part of [open.decode, open.prefill]) {
      if (part === null) continue;
      const who = part.worker ?? 'any prefill worker';
      if (part.state === 'offered' && nowMs - part.heardMs >= takeMs) {
        if (part.worker !== null) open.avoid.set(part.worker, nowMs + this.#times.heartbeatMs);
        return this.#failedOnce(open, `${who} did not take it`, nowMs);
      }
      if (part.state === 'taken' && nowMs - part.heardMs >= leaseMs) return this.#failedOnce(open, `${who} fell silent`, nowMs);
    }
    return [];
  }

  /** Asks workers, under a new generation. */
  #begin(open: OpenJob, nowMs: number): JobTableAction[] {
    for (const [worker, untilMs] of open.avoid) if (nowMs >= untilMs) open.avoid.delete(worker);
    const placement = this.#place(open.job, new Set(open.avoid.keys()));
    if ('lack' in placement) {
      open.retryAtMs = nowMs + this.#times.retryMs;
      open.noWorkerSinceMs = placement.lack === 'busy' ? null : (open.noWorkerSinceMs ?? nowMs);
      const { noWorkerMs } = this.#times;
      if (open.noWorkerSinceMs === null || nowMs - open.noWorkerSinceMs < noWorkerMs) return [];
      return this.#fail(open, 'no-worker', `${placement.why}, for ${noWorkerMs} ms; start one (before: ${open.lastReason})`);
    }
    open.noWorkerSinceMs = null;
    open.generation++;
    open.placement = placement;
    const { worker } = placement.decode;
    open.decode = { worker, target: { kind: 'one', worker }, state: 'offered', heardMs: nowMs };
    open.prefill = placement.prefill && {
      worker: placement.prefill.kind === 'one' ? placement.prefill.worker : null,
      target: placement.prefill,
      state: 'waiting',
      heardMs: nowMs,
    };
    const { request, body } = open.job;
    return [
      tell(worker, {
        kind: 'job',
        request,
        generation: open.generation,
        role: 'decode',
        decode: null,
        moves: placement.prefill !== null,
        body,
      }),
    ];
  }

  /** Only once the decode side has room: it says where the pages go. */
  #offerPrefill(open: OpenJob, nowMs: number): JobTableAction[] {
    const { prefill, decode, placement, job, generation } = open;
    if (placement === null || prefill?.state !== 'waiting' || decode?.state !== 'taken') return [];
    prefill.state = 'offered';
    prefill.heardMs = nowMs;
    const message = {
      kind: 'job',
      request: job.request,
      generation,
      role: 'prefill',
      decode: placement.decode,
      moves: true,
      body: job.body,
    } as const;
    return prefill.target.kind === 'one' ? [tell(prefill.target.worker, message)] : [{ do: 'offer-prefill', message }];
  }

  #failedOnce(open: OpenJob, reason: string, nowMs: number): JobTableAction[] {
    open.failures++;
    if (open.failures <= this.#mostRetries) return this.#retry(open, reason, nowMs);
    return this.#fail(open, 'job-failed', `it was tried ${open.failures} times; at last ${reason}`);
  }

  #retry(open: OpenJob, reason: string, nowMs: number): JobTableAction[] {
    const actions = cancels(open);
    open.lastReason = reason;
    open.placement = open.decode = open.prefill = null;
    open.retryAtMs = nowMs + this.#times.retryMs;
    return actions;
  }

  #done(open: OpenJob, decode: string, result: string): JobTableAction[] {
    const { job, generation, firstGeneration, prefill } = open;
    this.#over(open);
    const tries = generation - firstGeneration + 1;
    const outcome: JobOutcome = { kind: 'done', result, generation, tries, decode, prefill: prefill?.worker ?? null };
    const settle: JobTableAction = { do: 'settle', request: job.request, outcome };
    const idle = prefill !== null && prefill.state !== 'done' && prefill.worker !== null;
    const cancel: ControlMessage = { kind: 'cancel', request: job.request, generation, role: null };
    return idle ? [settle, tell(prefill.worker as string, cancel)] : [settle];
  }

  #over({ job: { request }, generation }: OpenJob): void {
    this.#jobs.delete(request);
    this.#lastGenerations.delete(request);
    this.#lastGenerations.set(request, generation);
    if (this.#lastGenerations.size > MOST_NAMES)
      this.#lastGenerations.delete(this.#lastGenerations.keys().next().value as string);
  }

  #fail(open: OpenJob, code: ControlErrorCode, why: string): JobTableAction[] {
    const { request } = open.job;
    this.#over(open);
    const error = new ControlError(code, `job ${JSON.stringify(request)} failed: ${why}`);
    return [...cancels(open), { do: 'settle', request, outcome: { kind: 'failed', error } }];
  }
}

function tell(worker: string, message: ControlMessage): JobTableAction {
  return { do: 'tell', worker, message };
}

/** Whoever is known to have been asked is told that it is over. */
function cancels({ job, generation, decode, prefill }: OpenJob): JobTableAction[] {
  const asked = [decode, prefill].filter((part) => part !== null && part.state !== 'waiting' && part.state !== 'done');
  const workers = new Set(asked.flatMap((part) => part?.worker ?? []));
  return [...workers].map((worker) => tell(worker, { kind: 'cancel', request: job.request, generation, role: null }));
}
