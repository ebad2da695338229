import type { Admission, ArrivedRequest, TransferReport } from '@bufferwise/adapter-disaggregation';
import { ControlError, type Job } from '@bufferwise/adapter-disaggregation/nats-control';
import type { PromptToRead } from './prompt-body.ts';

interface Try {
  readonly generation: number;
  arrived(): void;
  failed(reason: Error): void;
}

/** One prompt that another worker is to read, as it is waited for here: over several tries, of which the latest counts. */
export class AwaitedPrompt {
  readonly prompt: PromptToRead;
  /** Settles with the request once it is here; never, where it does not come. */
  readonly arrival: Promise<ArrivedRequest>;
  readonly #onTraffic: (report: TransferReport) => void;
  #arrive: (arrived: ArrivedRequest) => void = () => {};
  #try: Try | null = null;
  #arrived: ArrivedRequest | null = null;
  #over = false;
  /** Lets go of the room that is held for it, where some is. */
  #letGo = () => {};

  constructor(prompt: PromptToRead, onTraffic: (report: TransferReport) => void) {
    this.prompt = prompt;
    this.#onTraffic = onTraffic;
    this.arrival = new Promise((resolve) => {
      this.#arrive = resolve;
    });
  }

  /** Waits for a try. Settles when the request is here; rejects when this try failed, or was given up. */
  expect({ generation }: Job, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const current = { generation, arrived: resolve, failed: reject };
      this.#try = current;
      const giveUp = () => {
        if (this.#try === current) this.#try = null;
        reject(signal.reason);
      };
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  /**
   * What is to become of an offer of it.
   *
   * @param hold told of a promise that settles when the room that the offer takes is no transfer's any more
   */
  admit(offer: { readonly generation: number; readonly handover: number }, hold: (until: Promise<void>) => void): Admission {
    const { prompt, scope, publish } = this.prompt;
    const current = this.#try;
    if (this.#over || current === null || current.generation !== offer.generation)
      return { refuse: 'this try is not waited for' };
    if (offer.handover !== prompt.length - 1)
      return {
        refuse: `${offer.handover} tokens would come of a prompt of ${prompt.length}, and all but the last are waited for`,
      };
    this.#letGo();
    hold(
      new Promise((resolve) => {
        this.#letGo = resolve;
      }),
    );
    const letGo = this.#letGo;
    return {
      tokens: prompt,
      scope,
      publish,
      arrived: (arrived) => {
        letGo();
        this.#onTraffic(arrived.report);
        // What is thrown closes the request.
        if (this.#over || this.#arrived !== null) throw new Error('nobody waits for it any more');
        this.#arrived = arrived;
        this.#arrive(arrived);
        current.arrived();
      },
      failed: (report) => {
        letGo();
        this.#onTraffic(report);
        current.failed(failureOf(report));
      },
    };
  }

  /** Nobody waits any more. @returns what has arrived, which is the caller's; null where nothing has */
  end(): ArrivedRequest | null {
    this.#over = true;
    this.#letGo();
    return this.#arrived;
  }
}

function failureOf({ outcome }: TransferReport): Error {
  if (outcome.kind === 'complete') return new Error('it came, and could not be kept');
  // There is no room here: for no other worker either.
  if (outcome.kind === 'refused') return new ControlError('job-refused', outcome.reason);
  return new Error(`the move was ${outcome.kind}: ${outcome.reason}`);
}
