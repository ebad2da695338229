/** A batch as it went out. */
export interface SentBatch {
  readonly sequence: number;
  readonly payload: Uint8Array;
}

/** The latest batches, for subscribers that missed some. Sequence numbers ascend; a number that was lost has no batch. */
export class ReplayRing {
  readonly #batches: SentBatch[] = [];
  readonly #capacity: number;
  /** Where the next batch goes: the place of the oldest one once the ring is full. */
  #next = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  add(batch: SentBatch): void {
    this.#batches[this.#next] = batch;
    this.#next = (this.#next + 1) % this.#capacity;
  }

  /** The batches that are kept from a sequence number on, oldest first. */
  from(sequence: bigint): SentBatch[] {
    const oldestFirst = [...this.#batches.slice(this.#next), ...this.#batches.slice(0, this.#next)];
    return oldestFirst.filter((batch) => BigInt(batch.sequence) >= sequence);
  }
}
