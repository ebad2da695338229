/** How long the two sides of a transfer wait, in milliseconds. */
export interface TransferTimes {
  /** What is held for a transfer is let go when the other side was silent for so long. */
  readonly leaseMs: number;
  /** A question that was not answered is asked again after this; also how often a side shows that it is there. */
  readonly retryMs: number;
}

export const DEFAULT_TRANSFER_TIMES: TransferTimes = { leaseMs: 30_000, retryMs: 5_000 };

/** How a transfer ended on one side. Whatever it says, that side holds nothing for it any more. */
export type TransferOutcome =
  | { readonly kind: 'complete' }
  /** The other side does not take the request; another may. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** Given up by either side. */
  | { readonly kind: 'aborted'; readonly reason: string; readonly by: 'here' | 'there' }
  /** The other side is gone or silent: try again with the next generation. */
  | { readonly kind: 'lost'; readonly reason: string };
