import type { KvEventSink } from '@bufferwise/cache-manager';
import { BlockAnnouncer } from './block-announcer.ts';
import { ControlError } from './control-error.ts';
import { checkBody, type Job, type WorkerLoad, type WorkerRole } from './control-message.ts';
import { type ControlOptions, type ControlSettings, controlSettings, ticking } from './control-options.ts';
import { type JobEnd, type WorkerAction, WorkerCore, type WorkerInput } from './worker-core.ts';

export interface ControlWorkerOptions extends ControlOptions {
  readonly role: WorkerRole;
  /** Where the worker's page transport listens; empty when it does not. Up to 512 characters. */
  readonly address: string;
  /** Jobs that it does at a time, > 0. Default 16. */
  readonly slots?: number;
  /** How busy it is; asked several times a second, so be quick. */
  load(): WorkerLoad;
  /**
   * Does a part of a job. Who prefills moves the pages to `job.decode.address`, under the request and the generation; who decodes expects
   * them when `job.moves`, and answers with the result. The signal is aborted when nobody wants it any more. What it throws is reported, and
   * another worker is asked, unless it is a {ControlError} `job-refused`. A result is less than 1 MiB, and no more than the server takes.
   */
  run(job: Job, signal: AbortSignal): Promise<string>;
}

/** A worker that announces itself over NATS, takes jobs and does them. */
export class ControlWorker {
  readonly id: string;
  /** Hand it to the cache manager as `events`: so the others learn which prefixes are here. */
  readonly events: KvEventSink;
  /** Settles when it has left, for whatever reason. */
  readonly left: Promise<void>;
  readonly #settings: ControlSettings;
  readonly #core: WorkerCore;
  readonly #options: ControlWorkerOptions;
  readonly #running = new Map<string, AbortController>();
  #stopTicking = () => {};
  #closeQueue: (() => void) | undefined;
  #resolveLeft = () => {};

  /** Rejects with {ControlError} `invalid-control-options`, {TransferError} `invalid-transport-options` for the key. */
  static async start(options: ControlWorkerOptions): Promise<ControlWorker> {
    const worker = new ControlWorker(options, await controlSettings('worker', options));
    await worker.#open();
    return worker;
  }

  private constructor(options: ControlWorkerOptions, settings: ControlSettings) {
    const { role, address, slots = 16, layout } = options;
    if (!Number.isSafeInteger(slots) || slots < 1)
      throw new ControlError('invalid-control-options', `slots is ${slots}; it must be a whole number above 0`);
    if (address.length > 512)
      throw new ControlError('invalid-control-options', `the address has ${address.length} characters and 512 is the most`);
    this.#options = options;
    this.#settings = settings;
    this.id = settings.id;
    const announcer = new BlockAnnouncer(layout);
    this.events = announcer;
    const { pool, times, clock } = settings;
    this.#core = new WorkerCore({
      worker: { id: settings.id, role, address, slots, ...pool },
      times,
      nowMs: clock.now(),
      announcer,
    });
    this.left = new Promise((resolve) => {
      this.#resolveLeft = resolve;
    });
  }

  /** Jobs that run. */
  get numRunning(): number {
    return this.#core.numRunning;
  }

  /**
   * Takes no more jobs, ends those that run, and leaves. What still runs after `limitMs` (default: for ever) is stopped, and other workers do it
   * instead. Settles when it has left.
   */
  drain({ limitMs = Number.POSITIVE_INFINITY }: { limitMs?: number } = {}): Promise<void> {
    this.#handle({ kind: 'drain', limitMs });
    return this.left;
  }

  /** Leaves now; what runs is stopped, and other workers do it instead. */
  close(): Promise<void> {
    this.#handle({ kind: 'close' });
    return this.left;
  }

  async #open(): Promise<void> {
    const { endpoint, subjects, clock, times, onTrouble } = this.#settings;
    endpoint.open({
      message: ({ from, message }) => this.#handle({ kind: 'message', from, message }),
      connected: () => this.#handle({ kind: 'connected' }),
      disconnected: () => this.#handle({ kind: 'disconnected' }),
      closed: () => this.#handle({ kind: 'close' }),
      trouble: onTrouble,
    });
    endpoint.subscribe(subjects.worker(this.id));
    endpoint.subscribe(subjects.workers);
    await endpoint.flush();
    this.#handle({ kind: 'connected' });
    this.#stopTicking = ticking(clock, times, () => this.#handle({ kind: 'tick' }));
  }

  #handle(input: WorkerInput): void {
    if (this.#core.state === 'left') return;
    const nowMs = this.#settings.clock.now();
    this.#do(this.#core.handle({ kind: 'load', load: this.#options.load() }, nowMs));
    this.#do(this.#core.handle(input, nowMs));
  }

  #do(actions: readonly WorkerAction[]): void {
    const { endpoint, subjects, poolId } = this.#settings;
    for (const action of actions) {
      switch (action.do) {
        case 'tell-routers':
          endpoint.publish(subjects.fromWorker(this.id), action.message);
          break;
        case 'tell':
          endpoint.publish(subjects.router(action.router), action.message);
          break;
        case 'run':
          void this.#run(action.router, action.job);
          break;
        case 'stop':
          this.#running
            .get(nameOf(action.router, action.job))
            ?.abort(new ControlError('control-closed', `stopped: ${action.reason}`));
          this.#running.delete(nameOf(action.router, action.job));
          break;
        case 'queue':
          this.#closeQueue?.();
          this.#closeQueue = action.open ? endpoint.subscribe(subjects.prefill(poolId), 'prefill') : undefined;
          break;
        case 'left':
          this.#stopTicking();
          void endpoint.close().then(this.#resolveLeft, this.#resolveLeft);
          break;
      }
    }
  }

  async #run(router: string, job: Job): Promise<void> {
    const name = nameOf(router, job);
    const controller = new AbortController();
    this.#running.set(name, controller);
    let end: JobEnd;
    try {
      const result = await this.#options.run(job, controller.signal);
      checkBody('the result', result, this.#settings.endpoint.mostBytes);
      end = { kind: 'done', result };
    } catch (error) {
      end = {
        kind: 'failed',
        reason: error instanceof Error ? error.message : String(error),
        // Too long a result would be as long elsewhere.
        permanent: ['job-refused', 'invalid-job'].includes((error as { code?: string } | null)?.code ?? ''),
      };
    }
    if (this.#running.get(name) !== controller) return;
    this.#running.delete(name);
    this.#handle({ kind: 'ended', router, job, end });
  }
}

function nameOf(
  router: string,
  { request, generation, role }: Job | { request: string; generation: number; role: string },
): string {
  return `${router} ${role} ${generation} ${request}`;
}
