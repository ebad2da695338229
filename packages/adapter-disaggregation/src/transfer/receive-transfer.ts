import { BufferwiseError } from '@bufferwise/core-policy';
import { mapLayouts } from './layout-map.ts';
import { planTransfer, type ReceiverGroup } from './plan-transfer.ts';
import { describeLayout, readLayout, type TransferLayout } from './transfer-layout.ts';
import { MOST_MISSING, MOST_REASON, type OfferedRequest, type TransferMessage } from './transfer-message.ts';
import { DEFAULT_TRANSFER_TIMES, type TransferOutcome, type TransferTimes } from './transfer-times.ts';

/** What a receiver is told. */
export type ReceiverInput =
  | { readonly kind: 'message'; readonly message: TransferMessage }
  | { readonly kind: 'page'; readonly group: number; readonly block: number; readonly bytes: Uint8Array }
  /** Pages are held for the transfer: room for all that it needs, and what was found of each group. */
  | { readonly kind: 'allocated'; readonly groups: readonly ReceiverGroup[] }
  /** There is no room, or the request cannot be taken; nothing is held. */
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'tick' }
  | { readonly kind: 'abort'; readonly reason: string }
  | { readonly kind: 'lost'; readonly reason: string };

/** What a receiver wants done, in this order, before it is told anything else. */
export type ReceiverAction =
  | { readonly do: 'send'; readonly message: TransferMessage }
  /** Takes room for a request of so many tokens; `allocated` or `refused` answers, now or later. */
  | { readonly do: 'allocate'; readonly handover: number; readonly request: OfferedRequest }
  /** Writes a page into the room that was taken. */
  | { readonly do: 'write'; readonly group: number; readonly block: number; readonly bytes: Uint8Array }
  /** The room is the request's now: what was held for the transfer is held by it. Once, instead of `release`. */
  | { readonly do: 'hand-over' }
  /** Gives the room back; nothing will be written into it any more. Once, instead of `hand-over`. */
  | { readonly do: 'release' }
  | { readonly do: 'finish'; readonly outcome: TransferOutcome };

type ReceiverState = 'waiting' | 'allocating' | 'receiving' | 'closed';

/**
 * The receiving side of one try of one request, without I/O. From `allocated` on it holds room, until it says `hand-over` or `release`;
 * one of the two follows within a lease after the other side fell silent. What comes after that is dropped: late pages never
 * reach room that may be somebody else's.
 */
export class ReceiveTransfer {
  readonly #layout: TransferLayout;
  readonly #model: string;
  readonly #times: TransferTimes;
  #state: ReceiverState = 'waiting';
  #outcome: TransferOutcome | undefined;
  #handover = 0;
  #partBytes: number;
  #answer: TransferMessage | undefined;
  /** Pages that have not come, as `group block`. */
  readonly #missing = new Map<string, readonly [group: number, block: number]>();
  #heardMs: number;
  #spokeMs: number;
  #abortUnanswered = false;

  /** @param options `model`: as offers must name it; `partBytes`: bytes of pages that may come at a time */
  constructor(options: { layout: TransferLayout; model: string; partBytes: number; nowMs: number; times?: TransferTimes }) {
    this.#layout = options.layout;
    this.#model = options.model;
    this.#partBytes = options.partBytes;
    this.#times = options.times ?? DEFAULT_TRANSFER_TIMES;
    this.#heardMs = this.#spokeMs = options.nowMs;
  }

  /** Undefined while it is open. */
  get outcome(): TransferOutcome | undefined {
    return this.#outcome;
  }

  /** Bytes of pages that come at a time at most, once an offer came. */
  get partBytes(): number {
    return this.#partBytes;
  }

  /** Whether a page is awaited. */
  isMissing(group: number, block: number): boolean {
    return this.#missing.has(`${group} ${block}`);
  }

  handle(input: ReceiverInput, nowMs: number): ReceiverAction[] {
    if (input.kind === 'tick') return this.#tick(nowMs);
    if (this.#state === 'closed') return this.#afterwards(input);
    switch (input.kind) {
      case 'lost':
        return this.#close({ kind: 'lost', reason: input.reason });
      case 'abort':
        return this.#abort(input.reason, nowMs);
      case 'allocated':
        return this.#allocated(input.groups, nowMs);
      case 'refused':
        return this.#refuse(input.reason, nowMs);
      case 'page':
        this.#heardMs = nowMs;
        return this.#page(input, nowMs);
      default:
        this.#heardMs = nowMs;
        return this.#hear(input.message, nowMs);
    }
  }

  #hear(message: TransferMessage, nowMs: number): ReceiverAction[] {
    switch (message.kind) {
      case 'offer':
        if (this.#state !== 'waiting') return this.#answer === undefined ? [] : this.#say(this.#answer, nowMs);
        if (message.request.model !== this.#model)
          return this.#refuse(`the request is one of model ${message.request.model}, and this is ${this.#model}`, nowMs);
        try {
          mapLayouts(readLayout(message.layout), this.#layout);
        } catch (error) {
          if (!BufferwiseError.isInstance(error)) throw error;
          return this.#refuse(error.message, nowMs);
        }
        this.#handover = message.handover;
        this.#partBytes = Math.min(this.#partBytes, message.partBytes);
        this.#state = 'allocating';
        return [{ do: 'allocate', handover: message.handover, request: message.request }];
      case 'done': {
        if (this.#state !== 'receiving') return [];
        if (this.#missing.size > 0)
          return this.#say({ kind: 'missing', pages: [...this.#missing.values()].slice(0, MOST_MISSING) }, nowMs);
        const complete = this.#say({ kind: 'complete' }, nowMs);
        return [...this.#close({ kind: 'complete' }), ...complete];
      }
      case 'abort':
        return [
          ...this.#close({ kind: 'aborted', reason: message.reason, by: 'there' }),
          { do: 'send', message: { kind: 'aborted' } },
        ];
      default:
        return [];
    }
  }

  #allocated(groups: readonly ReceiverGroup[], nowMs: number): ReceiverAction[] {
    if (this.#state !== 'allocating') return [];
    this.#state = 'receiving';
    for (const { group, block } of planTransfer(this.#layout, groups, this.#handover).pages)
      this.#missing.set(`${group} ${block}`, [group, block]);
    this.#answer = { kind: 'accept', groups, layout: describeLayout(this.#layout), partBytes: this.#partBytes };
    return this.#say(this.#answer, nowMs);
  }

  #refuse(reason: string, nowMs: number): ReceiverAction[] {
    this.#answer = { kind: 'refuse', reason: reason.slice(0, MOST_REASON) };
    return [...this.#say(this.#answer, nowMs), ...this.#close({ kind: 'refused', reason })];
  }

  #page({ group, block, bytes }: ReceiverInput & { kind: 'page' }, nowMs: number): ReceiverAction[] {
    const key = `${group} ${block}`;
    // One that came before, or that nobody asked for.
    if (!this.#missing.has(key)) return [];
    const { pageBytes } = this.#layout.groups[group];
    if (bytes.length !== pageBytes)
      return this.#abort(`a page of group ${group} came with ${bytes.length} bytes instead of ${pageBytes}`, nowMs);
    this.#missing.delete(key);
    return [{ do: 'write', group, block, bytes }];
  }

  #tick(nowMs: number): ReceiverAction[] {
    const { leaseMs, retryMs } = this.#times;
    const isSilent = nowMs - this.#heardMs >= leaseMs;
    if (this.#state === 'closed') {
      if (isSilent) this.#abortUnanswered = false;
      if (!this.#abortUnanswered) return [];
    } else if (isSilent) {
      return this.#close({ kind: 'lost', reason: `the sender was silent for ${leaseMs} ms` });
    }
    if (nowMs - this.#spokeMs < retryMs) return [];
    return this.#say(this.#abortUnanswered && this.#answer ? this.#answer : { kind: 'renew' }, nowMs);
  }

  /** Late words of the other side, which may not know yet that it is over. */
  #afterwards(input: ReceiverInput): ReceiverAction[] {
    // Room that was asked for before it was over, and came after.
    if (input.kind === 'allocated') return [{ do: 'release' }];
    if (input.kind === 'lost') this.#abortUnanswered = false;
    if (input.kind !== 'message') return [];
    const { kind } = input.message;
    if (kind === 'aborted') this.#abortUnanswered = false;
    if (kind === 'abort') return [{ do: 'send', message: { kind: 'aborted' } }];
    if (kind === 'aborted') return [];
    const message: TransferMessage =
      this.#outcome?.kind === 'complete'
        ? { kind: 'complete' }
        : this.#outcome?.kind === 'refused' && this.#answer
          ? this.#answer
          : { kind: 'abort', reason: 'it is over on the receiving side' };
    return [{ do: 'send', message }];
  }

  #abort(reason: string, nowMs: number): ReceiverAction[] {
    this.#answer = { kind: 'abort', reason: reason.slice(0, MOST_REASON) };
    this.#abortUnanswered = true;
    return [...this.#close({ kind: 'aborted', reason, by: 'here' }), ...this.#say(this.#answer, nowMs)];
  }

  #say(message: TransferMessage, nowMs: number): ReceiverAction[] {
    this.#spokeMs = nowMs;
    return [{ do: 'send', message }];
  }

  #close(outcome: TransferOutcome): ReceiverAction[] {
    const held = this.#state === 'receiving';
    this.#state = 'closed';
    this.#outcome = outcome;
    this.#missing.clear();
    const actions: ReceiverAction[] = [{ do: 'finish', outcome }];
    if (held) actions.unshift({ do: outcome.kind === 'complete' ? 'hand-over' : 'release' });
    return actions;
  }
}
