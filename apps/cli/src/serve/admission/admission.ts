import { ApiError } from '../http/api-error.ts';

export interface AdmissionLimits {
  /** Answers that are computed at the same time. */
  readonly maxActive: number;
  /** Answers that may wait besides. */
  readonly maxQueue: number;
}

/** A request that was let in, until it is released. */
export interface Ticket {
  /** Says why the request has to end early. */
  readonly signal: AbortSignal;
  /** Ends the request's work with a reason. */
  cancel(reason: Error): void;
  /** The request is done. Does nothing the second time. */
  release(): void;
}

const MAX_RETRY_SECONDS = 60;
/** Weight of the latest answer in the mean time that one takes. */
const NEWS = 0.2;

/**
 * Who is let in. As many answers are under way as run and may wait; more are refused at once, with the time after which there may be room.
 * Once it drains nobody else is let in, and whoever is in ends in peace or is made to.
 */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #open = new Map<Ticket, AbortController>();
  readonly #onEmpty = new Set<() => void>();
  #numAnswers = 0;
  #draining = false;
  #meanSeconds = 0;

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
  }

  get draining(): boolean {
    return this.#draining;
  }

  /** Requests that are in. */
  get numRequests(): number {
    return this.#open.size;
  }

  /** Answers of these. */
  get numAnswers(): number {
    return this.#numAnswers;
  }

  /**
   * Lets a request in.
   *
   * @param numAnswers at least 1
   * @throws {ApiError} 429 when there is no room now, 400 when there never is, 503 when the server stops
   */
  admit(numAnswers: number): Ticket {
    const { maxActive, maxQueue } = this.#limits;
    const most = maxActive + maxQueue;
    if (this.#draining) throw stopping();
    if (numAnswers > most) {
      const message = `the request asks for ${numAnswers} answers, and this server has ${most} at a time at most`;
      throw new ApiError(message, { status: 400, code: 'too_many_answers', param: 'n' });
    }
    if (this.#numAnswers + numAnswers > most) throw this.#full();
    return this.#letIn(numAnswers);
  }

  /** Lets nobody else in, and settles when nobody is left. */
  async drain(): Promise<void> {
    this.#draining = true;
    if (this.#open.size > 0) await new Promise<void>((resolve) => this.#onEmpty.add(resolve));
  }

  /** Makes everybody end who is in. Returns how many that are. */
  cancelAll(reason: Error): number {
    for (const controller of this.#open.values()) controller.abort(reason);
    return this.#open.size;
  }

  #letIn(numAnswers: number): Ticket {
    const controller = new AbortController();
    const startedAt = performance.now();
    const ticket: Ticket = {
      signal: controller.signal,
      cancel: (reason) => controller.abort(reason),
      release: () => {
        if (!this.#open.delete(ticket)) return;
        this.#numAnswers -= numAnswers;
        this.#meanSeconds += NEWS * ((performance.now() - startedAt) / 1000 - this.#meanSeconds);
        if (this.#open.size > 0) return;
        for (const resolve of this.#onEmpty) resolve();
        this.#onEmpty.clear();
      },
    };
    this.#open.set(ticket, controller);
    this.#numAnswers += numAnswers;
    return ticket;
  }

  #full(): ApiError {
    const { maxActive, maxQueue } = this.#limits;
    const seconds = Math.ceil((this.#meanSeconds * (maxQueue + 1)) / maxActive);
    const retryAfter = Math.min(Math.max(seconds, 1), MAX_RETRY_SECONDS);
    const message = `${this.#numAnswers} answers are under way, and no more may wait; try again in ${retryAfter} s`;
    return new ApiError(message, { status: 429, type: 'rate_limit_error', code: 'queue_full', retryAfter });
  }
}

/** Seconds after which another server may have taken the place of one that stops. */
const STOPPING_RETRY_SECONDS = 5;

function stopping(): ApiError {
  return new ApiError('the server is about to stop and takes no more requests', {
    status: 503,
    code: 'stopping',
    retryAfter: STOPPING_RETRY_SECONDS,
  });
}
