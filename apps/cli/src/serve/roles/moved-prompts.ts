import { randomUUID } from 'node:crypto';
import type { Admission, ArrivedRequest, TransferOffer } from '@bufferwise/adapter-disaggregation';
import { ControlError, type ControlRouter, type Job } from '@bufferwise/adapter-disaggregation/nats-control';
import { AwaitedPrompt } from './awaited-prompt.ts';
import type { MoveFigures, MoveOutcome } from './move-figures.ts';
import { encodePrompt, type PromptToRead } from './prompt-body.ts';

export interface MovedPromptsOptions {
  readonly router: Pick<ControlRouter, 'connected' | 'submit' | 'workers'>;
  /** Id of the worker that answers: this one. */
  readonly worker: string;
  /** Whether the worker takes jobs still. */
  isOpen(): boolean;
  /** How long a prompt is waited for. Milliseconds. */
  readonly limitMs: number;
  readonly figures: MoveFigures;
  /** Gives a prompt up that is on its way here. */
  abort(request: string, reason: string): void;
  /** Told while room is held for a prompt on its way. */
  hold(until: Promise<void>): void;
}

/**
 * Has prompts read by others. A prompt is a job of the control plane whose decode part is this worker's own: it waits for the pages, over as many tries
 * as it takes, and is done when they are here. Pages that are here are used at once, whatever becomes of the job.
 */
export class MovedPrompts {
  readonly #options: MovedPromptsOptions;
  readonly #awaited = new Map<string, AwaitedPrompt>();

  constructor(options: MovedPromptsOptions) {
    this.#options = options;
  }

  /**
   * @returns the request, active, all but the last token of its prompt read, and the caller's; null where it is to be read here. Rejects with the
   *   signal's reason
   */
  async move(prompt: PromptToRead, signal: AbortSignal | undefined): Promise<ArrivedRequest | null> {
    const { figures } = this.#options;
    signal?.throwIfAborted();
    const impossible = this.#whyNot();
    if (impossible !== null) {
      figures.onMove(impossible);
      return null;
    }
    const request = randomUUID();
    const awaited = new AwaitedPrompt(prompt, (report) => figures.onTraffic('in', report));
    this.#awaited.set(request, awaited);
    const job = this.#submit(request, prompt, signal);
    await Promise.race([awaited.arrival, job]);
    this.#awaited.delete(request);
    const arrived = awaited.end();
    if (signal?.aborted) arrived?.cache.close();
    if (arrived === null || signal?.aborted) this.#options.abort(request, 'nobody waits for it any more');
    figures.onMove(signal?.aborted ? 'client-left' : arrived === null ? await job : 'moved');
    signal?.throwIfAborted();
    return arrived;
  }

  /** The decode part of a job: settles when the pages are here, or when none are to come. */
  async expect(job: Job, signal: AbortSignal): Promise<void> {
    const awaited = this.#awaited.get(job.request);
    if (awaited === undefined) throw new ControlError('job-refused', 'its prompt is not waited for any more');
    if (job.generation > 0) this.#options.figures.onRetry();
    if (job.moves) await awaited.expect(job, signal);
  }

  /** What is to become of an offer that comes over a link. */
  admit(offer: TransferOffer): Admission {
    const awaited = this.#awaited.get(offer.request);
    return awaited?.admit(offer, this.#options.hold) ?? { refuse: 'nobody waits for it here' };
  }

  #whyNot(): MoveOutcome | null {
    const { router, worker, isOpen } = this.#options;
    if (!router.connected) return 'control-lost';
    const others = router
      .workers()
      .filter(({ id, fits, draining, role }) => id !== worker && fits && !draining && role !== 'decode');
    return others.length === 0 || !isOpen() ? 'no-worker' : null;
  }

  /** Settles when the job has, with what it came to where nothing arrived. */
  async #submit(request: string, prompt: PromptToRead, signal: AbortSignal | undefined): Promise<MoveOutcome> {
    const { router, worker, limitMs } = this.#options;
    const { scope } = prompt;
    try {
      const body = encodePrompt(prompt);
      await router.submit({ request, tokens: prompt.prompt, scope, body, decodeAt: worker }, { signal, limitMs });
      return 'alone';
    } catch (error) {
      return outcomeOf(error);
    }
  }
}

function outcomeOf(error: unknown): MoveOutcome {
  if (!(error instanceof ControlError)) return 'failed';
  switch (error.code) {
    case 'no-worker':
    case 'control-lost':
      return error.code;
    case 'job-timeout':
      return 'timeout';
    case 'job-refused':
      return 'refused';
    default:
      return 'failed';
  }
}
