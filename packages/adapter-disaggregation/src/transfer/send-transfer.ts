import { BufferwiseError } from '@bufferwise/core-policy';
import { type LayoutMap, mapLayouts } from './layout-map.ts';
import { type PlannedPage, planTransfer } from './plan-transfer.ts';
import { describeLayout, readLayout, type TransferLayout } from './transfer-layout.ts';
import { MOST_REASON, type OfferedRequest, type TransferMessage } from './transfer-message.ts';
import { DEFAULT_TRANSFER_TIMES, type TransferOutcome, type TransferTimes } from './transfer-times.ts';

/** What a sender is told. */
export type SenderInput =
  | { readonly kind: 'message'; readonly message: TransferMessage }
  /** So many tokens of the request have been computed. */
  | { readonly kind: 'progress'; readonly numTokens: number }
  | { readonly kind: 'tick' }
  | { readonly kind: 'abort'; readonly reason: string }
  /** The connection is gone. */
  | { readonly kind: 'lost'; readonly reason: string };

/** What a sender wants done, in this order, before it is told anything else. */
export type SenderAction =
  | { readonly do: 'send'; readonly message: TransferMessage }
  /** Reads the page, a group and a block of the receiver, and sends its bytes. */
  | { readonly do: 'send-page'; readonly group: number; readonly block: number }
  /** The pages of the request are no longer needed for this transfer. Once. */
  | { readonly do: 'release' }
  | { readonly do: 'finish'; readonly outcome: TransferOutcome };

/** What both sides have agreed on. */
export interface Agreement {
  /** How pages that travel are made of the sender's. */
  readonly map: LayoutMap;
  /** Bytes of pages at a time at most. */
  readonly partBytes: number;
}

type SenderState = 'offering' | 'sending' | 'closed';

/**
 * The sending side of one try of one request, without I/O: told what happened and when, it says what to do. It holds the pages of the
 * request from `start` until it says `release`; that follows, whatever comes or does not, within a lease after the other side fell silent.
 */
export class SendTransfer {
  readonly #layout: TransferLayout;
  readonly #handover: number;
  readonly #request: OfferedRequest;
  readonly #partBytes: number;
  readonly #times: TransferTimes;
  #state: SenderState = 'offering';
  #outcome: TransferOutcome | undefined;
  #agreed: Agreement | undefined;
  /** Said again until it is answered. */
  #question: TransferMessage | undefined;
  #askedMs = 0;
  #heardMs = 0;
  #progress = 0;
  /** Planned and not sent yet. */
  #unsent: readonly PlannedPage[] = [];
  #planned: readonly PlannedPage[] = [];
  #abortUnanswered = false;

  /** @param options `handover`: tokens with which the request moves, > 0; `partBytes`: bytes of pages that can be sent at a time */
  constructor(options: {
    layout: TransferLayout;
    handover: number;
    request: OfferedRequest;
    partBytes: number;
    times?: TransferTimes;
  }) {
    this.#layout = options.layout;
    this.#handover = options.handover;
    this.#request = options.request;
    this.#partBytes = options.partBytes;
    this.#times = options.times ?? DEFAULT_TRANSFER_TIMES;
  }

  /** Undefined while it is open. */
  get outcome(): TransferOutcome | undefined {
    return this.#outcome;
  }

  /** Undefined until the receiver has accepted. */
  get agreed(): Agreement | undefined {
    return this.#agreed;
  }

  /** Whether the receiver lacks pages that are not computed, or not asked for, yet. */
  get needsPages(): boolean {
    return this.#state === 'sending' && this.#unsent.length > 0;
  }

  /** To be called once. The pages of the request are held from here on. */
  start(nowMs: number): SenderAction[] {
    this.#heardMs = nowMs;
    const layout = describeLayout(this.#layout);
    const offer = { handover: this.#handover, layout, request: this.#request, partBytes: this.#partBytes };
    return this.#ask({ kind: 'offer', ...offer }, nowMs);
  }

  handle(input: SenderInput, nowMs: number): SenderAction[] {
    if (input.kind === 'tick') return this.#tick(nowMs);
    if (this.#state === 'closed') return this.#afterwards(input);
    if (input.kind === 'lost') return this.#close({ kind: 'lost', reason: input.reason });
    if (input.kind === 'abort') return this.#abort(input.reason, nowMs);
    if (input.kind === 'progress') {
      this.#progress = Math.max(this.#progress, input.numTokens);
      return this.#state === 'sending' ? this.#sendReady(nowMs) : [];
    }
    this.#heardMs = nowMs;
    return this.#hear(input.message, nowMs);
  }

  #hear(message: TransferMessage, nowMs: number): SenderAction[] {
    switch (message.kind) {
      case 'accept': {
        return this.#state === 'offering' ? this.#accepted(message, nowMs) : [];
      }
      case 'refuse':
        return this.#state === 'offering' ? this.#close({ kind: 'refused', reason: message.reason }) : [];
      case 'missing': {
        if (this.#question?.kind !== 'done') return [];
        const wanted = new Set(message.pages.map(([group, block]) => `${group} ${block}`));
        this.#unsent = this.#planned.filter(({ group, block }) => wanted.has(`${group} ${block}`));
        return this.#sendReady(nowMs);
      }
      case 'complete':
        return this.#question?.kind === 'done' ? this.#close({ kind: 'complete' }) : [];
      case 'abort':
        return [
          { do: 'send', message: { kind: 'aborted' } },
          ...this.#close({ kind: 'aborted', reason: message.reason, by: 'there' }),
        ];
      default:
        return [];
    }
  }

  #accepted(accept: Extract<TransferMessage, { kind: 'accept' }>, nowMs: number): SenderAction[] {
    const receiver = readLayout(accept.layout);
    if (accept.groups.length !== receiver.groups.length) return this.#abort('the answer has other groups than its layout', nowMs);
    try {
      this.#agreed = { map: mapLayouts(this.#layout, receiver), partBytes: Math.min(this.#partBytes, accept.partBytes) };
    } catch (error) {
      if (!BufferwiseError.isInstance(error)) throw error;
      return this.#abort(error.message, nowMs);
    }
    this.#state = 'sending';
    this.#question = undefined;
    this.#planned = planTransfer(receiver, accept.groups, this.#handover).pages;
    this.#unsent = this.#planned;
    return this.#sendReady(nowMs);
  }

  #sendReady(nowMs: number): SenderAction[] {
    const ready = this.#unsent.filter(({ readyAt }) => readyAt <= this.#progress);
    this.#unsent = this.#unsent.filter(({ readyAt }) => readyAt > this.#progress);
    const actions: SenderAction[] = ready.map(({ group, block }) => ({ do: 'send-page', group, block }));
    // Whatever is not computed yet, the receiver has.
    if (this.#unsent.length === 0) actions.push(...this.#ask({ kind: 'done' }, nowMs));
    return actions;
  }

  #tick(nowMs: number): SenderAction[] {
    const { leaseMs, retryMs } = this.#times;
    const isSilent = nowMs - this.#heardMs >= leaseMs;
    if (this.#state === 'closed') {
      if (!this.#abortUnanswered) return [];
      if (isSilent) this.#abortUnanswered = false;
    } else if (isSilent) {
      return this.#close({ kind: 'lost', reason: `the receiver was silent for ${leaseMs} ms` });
    }
    if (nowMs - this.#askedMs < retryMs) return [];
    if (this.#state === 'closed' && !this.#abortUnanswered) return [];
    return this.#ask(this.#question ?? { kind: 'renew' }, nowMs);
  }

  /** Late words of the other side, which may not know yet that it is over. */
  #afterwards(input: SenderInput): SenderAction[] {
    if (input.kind === 'lost') this.#abortUnanswered = false;
    if (input.kind !== 'message') return [];
    const { kind } = input.message;
    if (kind === 'aborted') this.#abortUnanswered = false;
    if (kind === 'abort') return [{ do: 'send', message: { kind: 'aborted' } }];
    if (kind === 'aborted' || kind === 'complete' || kind === 'refuse' || this.#outcome?.kind === 'complete') return [];
    return [{ do: 'send', message: { kind: 'abort', reason: 'it is over on the sending side' } }];
  }

  #abort(reason: string, nowMs: number): SenderAction[] {
    this.#abortUnanswered = true;
    return [
      ...this.#ask({ kind: 'abort', reason: reason.slice(0, MOST_REASON) }, nowMs),
      ...this.#close({ kind: 'aborted', reason, by: 'here' }),
    ];
  }

  #ask(message: TransferMessage, nowMs: number): SenderAction[] {
    if (message.kind !== 'renew') this.#question = message;
    this.#askedMs = nowMs;
    return [{ do: 'send', message }];
  }

  #close(outcome: TransferOutcome): SenderAction[] {
    this.#state = 'closed';
    this.#outcome = outcome;
    this.#unsent = [];
    this.#planned = [];
    return [{ do: 'release' }, { do: 'finish', outcome }];
  }
}
