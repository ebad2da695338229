/** Numbers that are remembered of a sender: one that comes later than so many others is refused. */
const WINDOW = 1024;
/** Senders that are remembered; those that were silent longest are forgotten first. */
const MOST_SENDERS = 4096;

/** What a sender says of itself and of its message. */
export interface SenderMark {
  readonly from: string;
  /** Of one run of the sender. */
  readonly session: string;
  /** When that run began, on the sender's own clock. */
  readonly startedMs: number;
  /** 0, 1, 2, … over all messages of the run. */
  readonly number: number;
}

interface Known {
  readonly session: string;
  readonly startedMs: number;
  highest: number;
  /** Number `n` came: bit `n % WINDOW`. */
  readonly came: Uint32Array;
}

/** Lets each message of each sender pass once, and none of an earlier run of it. */
export class SessionGuard {
  readonly #senders = new Map<string, Known>();

  /** Whether the run is the latest that is known of its sender; from now on it is. */
  isLatest({ from, session, startedMs }: SenderMark): boolean {
    const known = this.#senders.get(from);
    if (known !== undefined && known.session !== session && startedMs <= known.startedMs) return false;
    if (known?.session !== session)
      this.#senders.set(from, { session, startedMs, highest: -1, came: new Uint32Array(WINDOW / 32) });
    else {
      this.#senders.delete(from);
      this.#senders.set(from, known);
    }
    if (this.#senders.size > MOST_SENDERS) this.#senders.delete(this.#senders.keys().next().value as string);
    return true;
  }

  /** Whether the message is of the latest run and did not come before. It has come from now on. */
  isNew(mark: SenderMark): boolean {
    if (!this.isLatest(mark)) return false;
    const known = this.#senders.get(mark.from) as Known;
    const { number } = mark;
    if (number <= known.highest - WINDOW) return false;
    for (let skipped = Math.max(known.highest + 1, number - WINDOW + 1); skipped <= number; skipped++)
      setBit(known.came, skipped, false);
    known.highest = Math.max(known.highest, number);
    const isNew = (known.came[(number % WINDOW) >> 5] & (1 << (number & 31))) === 0;
    setBit(known.came, number, true);
    return isNew;
  }
}

function setBit(bits: Uint32Array, number: number, value: boolean): void {
  const at = (number % WINDOW) >> 5;
  if (value) bits[at] |= 1 << (number & 31);
  else bits[at] &= ~(1 << (number & 31));
}
