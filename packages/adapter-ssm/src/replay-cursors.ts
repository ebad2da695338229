import { afterReplay, type ReplayCursor, type ReplayRing, settlesRing } from '@bufferwise/gpu-kernels';

/** What the last step of a sequence left in its ring. */
interface LastStep {
  /** Before the step. */
  readonly cursor: ReplayCursor;
  /** Whether the step brought the checkpoint up to the ring. */
  readonly settled: boolean;
  /** Tokens that it wrote into the ring, any of which may be taken back. */
  readonly written: number;
}

/**
 * Where each sequence is in rings of one size, from step to step. How many tokens of a step were kept is told by where the next one
 * begins.
 */
export class ReplayCursors {
  readonly ring: ReplayRing;
  readonly #lastSteps = new WeakMap<object, LastStep>();

  constructor(ring: ReplayRing) {
    this.ring = ring;
  }

  /**
   * Where a sequence is whose next step begins at `start`. One that begins at its match or before it, or was never seen, has nothing in
   * its ring: its state page is the state.
   *
   * @returns undefined when the ring cannot go back or forward to there
   */
  at(sequence: object, start: number, matched: number): ReplayCursor | undefined {
    const last = this.#lastSteps.get(sequence);
    if (last === undefined || start <= matched) return { position: start, length: 0 };
    const kept = start - last.cursor.position;
    return kept >= 0 && kept <= last.written ? afterReplay(last.cursor, last.settled, kept) : undefined;
  }

  /** Takes note of a step of `numTokens` tokens that goes by the ring. */
  replayed(sequence: object, cursor: ReplayCursor, numTokens: number): void {
    this.#lastSteps.set(sequence, { cursor, settled: settlesRing(this.ring, cursor, numTokens), written: numTokens });
  }

  /** Takes note that the state page is the state after `position` tokens. */
  wrote(sequence: object, position: number): void {
    this.#lastSteps.set(sequence, { cursor: { position, length: 0 }, settled: false, written: 0 });
  }
}
