import { TransferError } from '../errors.ts';
import type { ReceiverGroup } from './plan-transfer.ts';
import { isLayoutDescription, type LayoutDescription } from './transfer-layout.ts';

/** What an offer says of the request. */
export interface OfferedRequest {
  /** Names the weights, and everything else that decides what is in a page. */
  readonly model: string;
  /** SHA-256 of the scope and the tokens up to the hand-over, as 64 hexadecimal digits: both sides mean the same request. */
  readonly prompt: string;
  /** Of no meaning to the protocol: what the receiving worker has to know of the request. */
  readonly note: string;
}

/** What the two sides of a transfer tell each other, besides pages. Every one may come twice, late or never. */
export type TransferMessage =
  /** The sender has a request that it will have computed up to a point, and asks for room. */
  | {
      readonly kind: 'offer';
      readonly handover: number;
      readonly layout: LayoutDescription;
      readonly request: OfferedRequest;
      /** Bytes of pages that it sends at a time at most. */
      readonly partBytes: number;
    }
  /** The receiver has room, and holds what it has of each group of its layout, in which pages travel. */
  | {
      readonly kind: 'accept';
      readonly groups: readonly ReceiverGroup[];
      readonly layout: LayoutDescription;
      /** Bytes of pages that come at a time at most. */
      readonly partBytes: number;
    }
  /** The receiver holds nothing and will not. */
  | { readonly kind: 'refuse'; readonly reason: string }
  /** All pages were sent. */
  | { readonly kind: 'done' }
  /** Pages, as `[group, block]`, that did not come. */
  | { readonly kind: 'missing'; readonly pages: readonly (readonly [number, number])[] }
  /** The receiver has everything and goes on: the sender may let go. */
  | { readonly kind: 'complete' }
  /** Still there. */
  | { readonly kind: 'renew' }
  /** It is over; whoever says so holds nothing any more. */
  | { readonly kind: 'abort'; readonly reason: string }
  | { readonly kind: 'aborted' };

/** Bytes of pages that go at a time, of which more must be possible. */
const LEAST_PART = 64;

/** Characters of a reason at most. */
export const MOST_REASON = 1000;

/** Characters of a note at most. */
export const MOST_NOTE = 1 << 15;

/** Pages that one `missing` names at most; what else is missing, the next one names. */
export const MOST_MISSING = 1024;

const utf8 = new TextEncoder();
const text = new TextDecoder('utf-8', { fatal: true });

export function encodeMessage(message: TransferMessage): Uint8Array {
  return utf8.encode(JSON.stringify(message));
}

/** @throws {TransferError} `invalid-transfer-message` for bytes that are none */
export function decodeMessage(bytes: Uint8Array): TransferMessage {
  let value: unknown;
  try {
    value = JSON.parse(text.decode(bytes));
  } catch (cause) {
    throw invalid('they are no JSON', cause);
  }
  const message = value as Record<string, unknown>;
  const check = typeof value === 'object' && value !== null ? CHECKS[message.kind as TransferMessage['kind']] : undefined;
  if (check === undefined || !Object.hasOwn(CHECKS, message.kind as string)) throw invalid('its kind is unknown');
  if (!check(message)) throw invalid(`a part of "${message.kind}" is missing or of another form`);
  return value as TransferMessage;
}

const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
const isText = (value: unknown) => typeof value === 'string' && value.length <= MOST_REASON;
const isPair = (value: unknown) => Array.isArray(value) && value.length === 2 && value.every(isCount);
const isListOf = (check: (each: unknown) => boolean) => (value: unknown) => Array.isArray(value) && value.every(check);
const nothing = () => true;

const isGroup = (value: unknown) =>
  isRecord(value) && isCount(value.endpoint) && isListOf((range) => isPair(range))(value.coverage);
const isPositive = (value: unknown) => isCount(value) && (value as number) > 0;
const isPartSize = (value: unknown) => isCount(value) && (value as number) >= LEAST_PART;
const isRequest = (value: unknown) =>
  isRecord(value) &&
  isText(value.model) &&
  isText(value.prompt) &&
  typeof value.note === 'string' &&
  value.note.length <= MOST_NOTE;

const CHECKS: Record<TransferMessage['kind'], (message: Record<string, unknown>) => boolean> = {
  offer: ({ handover, layout, request, partBytes }) =>
    isPositive(handover) && isLayoutDescription(layout) && isRequest(request) && isPartSize(partBytes),
  accept: ({ groups, layout, partBytes }) => isListOf(isGroup)(groups) && isLayoutDescription(layout) && isPartSize(partBytes),
  refuse: ({ reason }) => isText(reason),
  done: nothing,
  missing: ({ pages }) => isListOf(isPair)(pages),
  complete: nothing,
  renew: nothing,
  abort: ({ reason }) => isText(reason),
  aborted: nothing,
};

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function invalid(why: string, cause?: unknown): TransferError {
  return new TransferError('invalid-transfer-message', `what came is no message of a transfer: ${why}; end this transfer`, {
    cause,
  });
}
