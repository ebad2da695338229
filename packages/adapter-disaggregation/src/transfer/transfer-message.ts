import { TransferError } from '../errors.ts';
import type { ReceiverGroup } from './plan-transfer.ts';
import type { LayoutDescription } from './transfer-layout.ts';

/** What the two sides of a transfer tell each other, besides pages. Every one may come twice, late or never. */
export type TransferMessage =
  /** The sender has a request that it will have computed up to a point, and asks for room. */
  | { readonly kind: 'offer'; readonly handover: number; readonly layout: LayoutDescription }
  /** The receiver has room, and holds what it has of each group. */
  | { readonly kind: 'accept'; readonly groups: readonly ReceiverGroup[] }
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
const isText = (value: unknown) => typeof value === 'string' && value.length <= 1000;
const isPair = (value: unknown) => Array.isArray(value) && value.length === 2 && value.every(isCount);
const isListOf = (check: (each: unknown) => boolean) => (value: unknown) => Array.isArray(value) && value.every(check);
const nothing = () => true;

const isGroup = (value: unknown) =>
  isRecord(value) && isCount(value.endpoint) && isListOf((range) => isPair(range))(value.coverage);
const isLayout = (value: unknown) =>
  isRecord(value) &&
  isCount(value.tokensPerBlock) &&
  isListOf(
    (buffer) =>
      Array.isArray(buffer) &&
      buffer.length === 5 &&
      isText(buffer[0]) &&
      isText(buffer[2]) &&
      [buffer[1], buffer[3], buffer[4]].every(isCount),
  )(value.buffers);

const CHECKS: Record<TransferMessage['kind'], (message: Record<string, unknown>) => boolean> = {
  offer: ({ handover, layout }) => isCount(handover) && (handover as number) > 0 && isLayout(layout),
  accept: ({ groups }) => isListOf(isGroup)(groups),
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
