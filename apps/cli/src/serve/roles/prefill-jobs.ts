import type { OutgoingTransfer, TransferReport, TransferSender } from '@bufferwise/adapter-disaggregation';
import { ControlError, type Job } from '@bufferwise/adapter-disaggregation/nats-control';
import type { HybridEngine } from '@bufferwise/hybrid-engine';
import type { MoveFigures } from './move-figures.ts';
import type { PageLinks } from './page-links.ts';
import { decodePrompt } from './prompt-body.ts';

/** Who answers may have everything, and its word for that come behind the word of others that the job is done. Milliseconds. */
const LAST_WORD_MS = 5_000;

export interface PrefillOptions {
  readonly engine: Pick<HybridEngine, 'prefillFor'>;
  readonly sender: TransferSender;
  readonly links: PageLinks;
  readonly figures: MoveFigures;
}

/** Reads prompts for others, and moves them to where they are answered. */
export class PrefillJobs {
  readonly #options: PrefillOptions;

  constructor(options: PrefillOptions) {
    this.#options = options;
  }

  /**
   * Settles when the prompt has moved. Throws {ControlError} `job-refused` where who answers does not take it, which it does from nobody else;
   * what the engine throws, and why the move ended otherwise.
   */
  async run(job: Job, signal: AbortSignal): Promise<void> {
    const { figures } = this.#options;
    let outcome: TransferReport['outcome']['kind'] | 'failed' = 'failed';
    try {
      const transfer = await this.#move(job, signal);
      outcome = transfer.outcome.kind;
      figures.onTraffic('out', transfer);
      requireComplete(transfer);
    } finally {
      figures.onPrefill(outcome);
    }
  }

  async #move({ decode, request, generation, body }: Job, signal: AbortSignal): Promise<TransferReport> {
    const { engine, sender, links, figures } = this.#options;
    const prompt = decodePrompt(body);
    if (decode === null) throw new ControlError('job-refused', 'the job says nobody to move the prompt to');
    const connection = await links.to(decode.address);
    signal.throwIfAborted();
    const given = new GivenUp(signal);
    try {
      const { transfer, counts } = await engine.prefillFor({ ...prompt, signal: given.signal }, (moving) => {
        given.transfer = sender.send(connection, { ...moving, request, generation });
        return given.transfer;
      });
      figures.onRead(counts);
      return transfer;
    } finally {
      given.close();
    }
  }
}

/** Passes on that a job is given up: at once while there is something to read or send, else when the last word of who answers did not come. */
class GivenUp {
  transfer: OutgoingTransfer | undefined;
  readonly #job: AbortSignal;
  readonly #controller = new AbortController();
  #timer: NodeJS.Timeout | undefined;

  constructor(job: AbortSignal) {
    this.#job = job;
    job.addEventListener('abort', this.#onAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  close(): void {
    this.#job.removeEventListener('abort', this.#onAbort);
    clearTimeout(this.#timer);
  }

  readonly #onAbort = () => {
    const isSent = this.transfer?.isOpen === true && !this.transfer.needsPages;
    if (isSent) this.#timer = setTimeout(() => this.#giveUp(), LAST_WORD_MS);
    else this.#giveUp();
  };

  #giveUp(): void {
    this.#controller.abort(this.#job.reason);
  }
}

function requireComplete({ outcome }: TransferReport): void {
  if (outcome.kind === 'complete') return;
  if (outcome.kind === 'refused') throw new ControlError('job-refused', outcome.reason);
  throw new Error(`the move was ${outcome.kind}: ${outcome.reason}`);
}
