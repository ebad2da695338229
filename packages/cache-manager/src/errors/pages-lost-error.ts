import { BufferwiseError } from '@bufferwise/core-policy';

/**
 * A request lost pages that it needs: a device was lost, or a page did not come back from where it was kept. The request has
 * begun again from what is left; see `KvCache.lostTokens`. Code `pages-lost`. Told once; the next `resume` works from there.
 */
export class PagesLostError extends BufferwiseError {
  /** Tokens that the request still has: its history length now. */
  readonly keptTokens: number;
  /** Tokens behind them that were written, and are to be computed again. */
  readonly lostTokens: number;

  constructor(call: string, keptTokens: number, lostTokens: number) {
    super(
      'pages-lost',
      `${call}: pages of the request were lost, ${keptTokens} of its tokens are left and ${lostTokens} are to be computed again; ` +
        'read its lengths and reuseStatus, then resume it as one that was just opened',
    );
    this.keptTokens = keptTokens;
    this.lostTokens = lostTokens;
  }
}
