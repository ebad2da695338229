import type { Lifecycle } from '@bufferwise/core-policy';
import type { TransferLayout } from '../transfer/transfer-layout.ts';
import type { TransferOutcome } from '../transfer/transfer-times.ts';

/** What of one group travelled, in the receiver's pages. */
export interface GroupTraffic {
  readonly lifecycle: Lifecycle;
  /** Pages that the receiver lacked. */
  readonly pagesLacked: number;
  readonly bytesLacked: number;
  /** Pages that went or came, those that did so again included. */
  readonly pagesMoved: number;
  readonly bytesMoved: number;
}

/** How a transfer ended, and what travelled. */
export interface TransferReport {
  readonly outcome: TransferOutcome;
  /** Index = group of the receiver's layout; none before both sides had agreed. */
  readonly groups: readonly GroupTraffic[];
}

/** Counts what travels. */
export class TransferTraffic {
  #groups: { lifecycle: Lifecycle; pagesLacked: number; bytesLacked: number; pagesMoved: number; bytesMoved: number }[] = [];

  /** The receiver's pages are known, and those that it lacks. */
  begin({ groups }: TransferLayout, lacked: readonly { readonly group: number }[]): void {
    this.#groups = groups.map(({ lifecycle }) => ({ lifecycle, pagesLacked: 0, bytesLacked: 0, pagesMoved: 0, bytesMoved: 0 }));
    for (const { group } of lacked) {
      this.#groups[group].pagesLacked++;
      this.#groups[group].bytesLacked += groups[group].pageBytes;
    }
  }

  moved(group: number, pages: number, bytes: number): void {
    this.#groups[group].pagesMoved += pages;
    this.#groups[group].bytesMoved += bytes;
  }

  report(outcome: TransferOutcome): TransferReport {
    return { outcome, groups: this.#groups.map((group) => ({ ...group })) };
  }
}
