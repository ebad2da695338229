import type { ReuseScope, TokenSeq } from '@bufferwise/cache-manager';
import { blockKeys } from '@bufferwise/cache-manager/outside';
import { hashOfKey } from './block-announcer.ts';
import { ControlError } from './control-error.ts';
import { checkBody, isRequest } from './control-message.ts';
import { type ControlOptions, type ControlSettings, controlSettings, ticking } from './control-options.ts';
import type { JobOutcome } from './job-table.ts';
import { type RouterAction, RouterCore, type RouterInput, type RoutingOptions } from './router-core.ts';
import type { KnownWorker } from './worker-registry.ts';

export interface ControlRouterOptions extends ControlOptions {
  readonly routing?: RoutingOptions;
}

/** What somebody wants done. */
export interface ControlJob {
  /** Names it: 1 to 255 bytes. One job at a time has it. */
  readonly request: string;
  /** The prompt: workers are compared by what they have of it. */
  readonly tokens: TokenSeq;
  readonly scope?: ReuseScope;
  /** For the workers, of no meaning here; less than 1 MiB, and no more than the server takes. */
  readonly body: string;
  /** Id of the worker that is to decode, where that is settled: the one that has the client. Default: whoever is best. */
  readonly decodeAt?: string;
}

export type ControlAnswer = Omit<Extract<JobOutcome, { kind: 'done' }>, 'kind'>;

export interface RouterStatistics {
  readonly workers: number;
  /** Blocks in the index of prefixes, each once for each worker that has it. */
  readonly indexedBlocks: number;
  readonly openJobs: number;
  readonly doneJobs: number;
  readonly failedJobs: number;
  /** Generations beyond the first of jobs that are done. */
  readonly retries: number;
  /** Messages that were dropped, and what else was trouble. */
  readonly troubles: number;
}

/** Finds workers over NATS, gives jobs to those that have most of the prompt and are least busy, and sees to it that each job ends. */
export class ControlRouter {
  readonly id: string;
  readonly #settings: ControlSettings;
  readonly #core: RouterCore;
  readonly #tokensPerBlock: number;
  readonly #waiting = new Map<string, (outcome: JobOutcome) => void>();
  #stopTicking = () => {};
  #closed: Promise<void> | undefined;
  #isLost = false;
  readonly #counts = { doneJobs: 0, failedJobs: 0, retries: 0, troubles: 0 };

  /** Rejects with {ControlError} `invalid-control-options`, {TransferError} `invalid-transport-options` for the key. */
  static async start(options: ControlRouterOptions): Promise<ControlRouter> {
    const router = new ControlRouter(options, await controlSettings('router', options));
    await router.#open();
    return router;
  }

  private constructor({ layout, routing }: ControlRouterOptions, settings: ControlSettings) {
    const { id, pool, times, clock } = settings;
    this.#settings = settings;
    this.id = id;
    this.#tokensPerBlock = layout.tokensPerBlock;
    this.#core = new RouterCore({ layout, pool, times, nowMs: clock.now(), ...(routing === undefined ? {} : { routing }) });
  }

  /** Whether NATS is there, as far as is known. */
  get connected(): boolean {
    return this.#core.connected;
  }

  /** Workers that are there, those of other models and layouts too. */
  workers(): KnownWorker[] {
    return this.#core.registry.all();
  }

  statistics(): RouterStatistics {
    const { registry, index, jobs } = this.#core;
    return { workers: registry.all().length, indexedBlocks: index.numBlocks, openJobs: jobs.size, ...this.#counts };
  }

  /**
   * Has a job done. It is answered, or rejects with a {ControlError} that says why: `no-worker`, `job-timeout` after `limitMs` (default 120 000),
   * `job-failed` when several workers did, `job-refused` when one says that none should try, `control-lost`, `control-closed`, `invalid-job`; or
   * with the signal's reason. Then workers are told that nobody wants it any more.
   */
  async submit(job: ControlJob, options: { signal?: AbortSignal; limitMs?: number } = {}): Promise<ControlAnswer> {
    const { signal, limitMs = 120_000 } = options;
    const { request, tokens, scope, body, decodeAt } = job;
    signal?.throwIfAborted();
    this.#check(request, body, limitMs);
    const numBlocks = Math.floor(tokens.length / this.#tokensPerBlock);
    const blocks = blockKeys(tokens, scope, this.#tokensPerBlock).slice(0, numBlocks).map(hashOfKey);
    const stopped = new AbortController();
    try {
      const outcome = await new Promise<JobOutcome>((resolve, reject) => {
        this.#handle({ kind: 'submit', job: { request, blocks, numTokens: tokens.length, body, limitMs, decodeAt } }, () =>
          this.#waiting.set(request, resolve),
        );
        signal?.addEventListener(
          'abort',
          () => {
            this.#waiting.delete(request);
            this.#handle({ kind: 'cancel', request });
            reject(signal.reason);
          },
          { signal: stopped.signal },
        );
      });
      if (outcome.kind === 'failed') throw outcome.error;
      const { kind: _, ...answer } = outcome;
      return answer;
    } finally {
      stopped.abort();
    }
  }

  /** Ends all jobs with `control-closed`. The connection stays open. */
  close(): Promise<void> {
    this.#closed ??= this.#end('control-closed');
    return this.#closed;
  }

  #check(request: string, body: string, limitMs: number): void {
    if (this.#isLost)
      throw new ControlError('control-lost', 'the connection to NATS was ended; connect again and start a new router');
    if (this.#closed) throw new ControlError('control-closed', 'this router was closed; start a new one');
    if (!isRequest(request))
      throw new ControlError('invalid-job', `the request is named ${JSON.stringify(request)}; a name takes 1 to 255 bytes`);
    if (!(limitMs > 0)) throw new ControlError('invalid-job', `limitMs is ${limitMs}; it must be above 0`);
    checkBody('the body', body, this.#settings.endpoint.mostBytes);
  }

  async #open(): Promise<void> {
    const { endpoint, subjects, clock, times, onTrouble } = this.#settings;
    endpoint.open({
      message: ({ from, session, message }) => this.#handle({ kind: 'message', from, session, message }),
      connected: () => this.#handle({ kind: 'connected' }),
      disconnected: () => this.#handle({ kind: 'disconnected' }),
      closed: () => {
        this.#isLost = true;
        this.#closed ??= this.#end('control-lost');
      },
      trouble: (error) => {
        this.#counts.troubles++;
        onTrouble(error);
      },
    });
    endpoint.subscribe(subjects.router(this.id));
    endpoint.subscribe(subjects.fromWorker('*'));
    await endpoint.flush();
    this.#handle({ kind: 'connected' });
    this.#stopTicking = ticking(clock, times, () => this.#handle({ kind: 'tick' }));
  }

  /** @param accepted called when the input was taken, before anything is done about it */
  #handle(input: RouterInput, accepted: () => void = () => {}): void {
    const actions = this.#core.handle(input, this.#settings.clock.now());
    accepted();
    this.#do(actions);
  }

  #do(actions: readonly RouterAction[]): void {
    const { endpoint, subjects, poolId } = this.#settings;
    for (const action of actions) {
      switch (action.do) {
        case 'tell-workers':
          endpoint.publish(subjects.workers, action.message);
          break;
        case 'tell':
          endpoint.publish(subjects.worker(action.worker), action.message);
          break;
        case 'offer-prefill':
          endpoint.publish(subjects.prefill(poolId), action.message);
          break;
        case 'settle':
          this.#settle(action.request, action.outcome);
          break;
      }
    }
  }

  #settle(request: string, outcome: JobOutcome): void {
    if (outcome.kind === 'done') {
      this.#counts.doneJobs++;
      this.#counts.retries += outcome.tries - 1;
    } else this.#counts.failedJobs++;
    this.#waiting.get(request)?.(outcome);
    this.#waiting.delete(request);
  }

  async #end(code: 'control-closed' | 'control-lost'): Promise<void> {
    this.#stopTicking();
    this.#handle({ kind: 'close', code });
    await this.#settings.endpoint.close();
  }
}
