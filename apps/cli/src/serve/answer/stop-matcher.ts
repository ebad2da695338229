/**
 * Finds stop sequences in a text that comes in pieces, wherever the pieces are cut. Of several the one that is complete first ends the
 * text; of those the one that begins first.
 *
 * What may be the beginning of one is held back until it is known.
 */
export class StopMatcher {
  readonly #stops: readonly string[];
  #held = '';
  #stopped = false;

  /** @param stops none of them empty */
  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  /** Whether a stop sequence was found: the text has ended in front of it. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** The text that is certain now. */
  push(piece: string): string {
    if (this.#stopped) return '';
    const text = this.#held + piece;
    const end = this.#firstStop(text);
    this.#stopped = end !== null;
    const certain = end ?? text.length - this.#openEnd(text);
    this.#held = this.#stopped ? '' : text.slice(certain);
    return text.slice(0, certain);
  }

  /** What was held back, at the end of the text. */
  end(): string {
    const rest = this.#held;
    this.#held = '';
    return rest;
  }

  /** Where the stop sequence begins that ends the text, or null. */
  #firstStop(text: string): number | null {
    let best: { begin: number; end: number } | null = null;
    for (const stop of this.#stops) {
      const begin = text.indexOf(stop);
      if (begin < 0) continue;
      const end = begin + stop.length;
      if (best === null || end < best.end || (end === best.end && begin < best.begin)) best = { begin, end };
    }
    return best?.begin ?? null;
  }

  /** Length of the longest end of the text with which a stop sequence begins. */
  #openEnd(text: string): number {
    let longest = 0;
    for (const stop of this.#stops) {
      for (let length = Math.min(stop.length - 1, text.length); length > longest; length--) {
        if (text.endsWith(stop.slice(0, length))) longest = length;
      }
    }
    return longest;
  }
}
