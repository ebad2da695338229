import type { ControlMessage, JobRole, WorkerDescription, WorkerLoad } from './control-message.ts';

/** A worker that is there. */
export interface KnownWorker extends WorkerDescription {
  /** Of this run of it: after a restart it is another. */
  readonly session: string;
  readonly load: WorkerLoad;
  readonly draining: boolean;
  /** Can work with this side: the same model, the same layout. */
  readonly fits: boolean;
}

type Status = ControlMessage & { kind: 'status' };

/** Who is there, by what they say of themselves. No I/O: told what came and when. */
export class WorkerRegistry {
  readonly #pool: { readonly fingerprint: string; readonly layoutHash: string };
  readonly #expiryMs: number;
  readonly #mostWorkers: number;
  readonly #workers = new Map<string, { known: KnownWorker; heardMs: number }>();

  /** @param options `pool`: what workers must have to be of use; `mostWorkers`: others than these are not noticed */
  constructor(options: { pool: { fingerprint: string; layoutHash: string }; expiryMs: number; mostWorkers: number }) {
    this.#pool = options.pool;
    this.#expiryMs = options.expiryMs;
    this.#mostWorkers = options.mostWorkers;
  }

  /** @returns whether the worker is new, was known, or was known and has been started anew since */
  heard(session: string, { worker, load, draining }: Status, nowMs: number): 'new' | 'known' | 'restarted' | 'ignored' {
    const before = this.#workers.get(worker.id);
    if (before === undefined && this.#workers.size >= this.#mostWorkers) return 'ignored';
    const { fingerprint, layoutHash } = this.#pool;
    const fits = worker.fingerprint === fingerprint && worker.layoutHash === layoutHash;
    this.#workers.set(worker.id, { known: { ...worker, session, load, draining, fits }, heardMs: nowMs });
    if (before === undefined) return 'new';
    return before.known.session === session ? 'known' : 'restarted';
  }

  /** @returns whether that run of it was known */
  left(id: string, session: string): boolean {
    return this.#workers.get(id)?.known.session === session && this.#workers.delete(id);
  }

  /** Forgets those that were silent too long, and names them. */
  expire(nowMs: number): string[] {
    const gone = [...this.#workers].filter(([, { heardMs }]) => nowMs - heardMs >= this.#expiryMs).map(([id]) => id);
    for (const id of gone) this.#workers.delete(id);
    return gone;
  }

  /** Nobody could be heard until now: whoever is known has a whole expiry to say something. */
  excuse(nowMs: number): void {
    for (const entry of this.#workers.values()) entry.heardMs = nowMs;
  }

  get(id: string): KnownWorker | undefined {
    return this.#workers.get(id)?.known;
  }

  all(): KnownWorker[] {
    return [...this.#workers.values()].map(({ known }) => known);
  }

  /** Those that may be asked for a part of a job now. */
  candidates(role: JobRole): KnownWorker[] {
    return this.all().filter((worker) => worker.fits && !worker.draining && (worker.role === role || worker.role === 'both'));
  }
}
