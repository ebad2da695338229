import type { PageTransportLimits } from '@bufferwise/adapter-kit';
import { type Clock, systemClock } from '../clock.ts';
import { TransferError } from '../errors.ts';

/** What transports over links take, whatever the links run over. Times are milliseconds. */
export interface LinkOptions {
  /** Default: messages of 64 KiB, pages of 1 MiB, 4 MiB on their way. */
  readonly limits?: Partial<PageTransportLimits>;
  readonly clock?: Clock;
  /** Within this the two sides know each other, or the connection is ended. Default 10 000. */
  readonly handshakeTimeoutMs?: number;
  /** A side from which nothing came for so long, or that takes nothing of what is sent to it, is lost. Default 15 000. */
  readonly peerTimeoutMs?: number;
  /** A side that has nothing to say says so this often. Default a third of `peerTimeoutMs`. */
  readonly heartbeatMs?: number;
}

export type LinkSettings = Required<Omit<LinkOptions, 'limits'>> & { readonly limits: PageTransportLimits };

/** @throws {TransferError} `invalid-transport-options` */
export function linkSettings(options: LinkOptions): LinkSettings {
  const { maxMessageBytes = 1 << 16, maxPagesBytes = 1 << 20, windowBytes = 4 << 20 } = options.limits ?? {};
  const { clock = systemClock, handshakeTimeoutMs = 10_000, peerTimeoutMs = 15_000 } = options;
  const { heartbeatMs = peerTimeoutMs / 3 } = options;
  const limits = { maxMessageBytes, maxPagesBytes, windowBytes };
  if (!limitsAreSound(limits))
    throw new TransferError(
      'invalid-transport-options',
      `limits are ${JSON.stringify(limits)}: whole numbers from 1 to ${MOST_BYTES}, and windowBytes at least maxPagesBytes`,
    );
  const times = { handshakeTimeoutMs, peerTimeoutMs, heartbeatMs };
  if (Object.values(times).some((time) => !(time > 0 && time < 2 ** 31)) || heartbeatMs >= peerTimeoutMs)
    throw new TransferError(
      'invalid-transport-options',
      `times are ${JSON.stringify(times)} ms: above 0, below 2^31, and heartbeatMs below peerTimeoutMs`,
    );
  return { limits, clock, ...times };
}

/** Bytes that a limit may have: what is asked for at a time must fit a buffer. */
const MOST_BYTES = 2 ** 30;

export function limitsAreSound({ maxMessageBytes, maxPagesBytes, windowBytes }: PageTransportLimits): boolean {
  const all = [maxMessageBytes, maxPagesBytes, windowBytes];
  return all.every((limit) => Number.isInteger(limit) && limit >= 1 && limit <= MOST_BYTES) && windowBytes >= maxPagesBytes;
}

/** Bytes that a message takes of its window, besides its body: what it costs to keep. */
const MESSAGE_COST_BYTES = 512;

export function messageCost(bodyBytes: number): number {
  return bodyBytes + MESSAGE_COST_BYTES;
}

/** Bytes of messages that may be on their way to a side with these limits. */
export function messageWindowBytes({ maxMessageBytes }: PageTransportLimits): number {
  return 16 * messageCost(maxMessageBytes) + 256 * MESSAGE_COST_BYTES;
}
