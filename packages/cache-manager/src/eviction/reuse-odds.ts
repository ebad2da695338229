import { answerLengthOf, NUM_ANSWER_LENGTHS, NUM_PARTS, NUM_USES, type PageUse, partOf } from './page-use.ts';

/** Pages of average fortune that every count begins with: a few observations do not tip the scales. */
const PRIOR = 100;
/** The same for a group as a whole. */
const GROUP_PRIOR = 1000;
/** Odds are not taken for lower or higher than so many doublings, whatever was seen. */
const MOST_DOUBLINGS = 3;
const MOST_HALVINGS = 8;
/** Counts are halved when so many pages were seen, so that what was long ago fades. */
const MEMORY = 1 << 16;

/**
 * Learns how much likelier than the average page one of each use is to be asked for again.
 *
 * Part of the request and length of the answer are counted apart and multiplied (naive Bayes): so few counts learn fast, and
 * the answer does not depend on how often each pair occurs.
 */
export class ReuseOdds {
  /** Counts by part, then by answer length. */
  readonly #seen = new Float64Array(NUM_PARTS + NUM_ANSWER_LENGTHS);
  readonly #reused = new Float64Array(NUM_PARTS + NUM_ANSWER_LENGTHS);

  /** A page of this use was let go, never having been reused. */
  sawLetGo(use: PageUse): void {
    this.#count(this.#seen, use);
    if (total(this.#seen) >= MEMORY) this.#fade();
  }

  /** A page counted by `sawLetGo` was asked for again, whether it was still there or not. */
  sawReuse(use: PageUse): void {
    this.#count(this.#reused, use);
  }

  /** Pages let go that never had been reused, and how many of them were asked for again. */
  get seen(): number {
    return total(this.#seen);
  }

  get reused(): number {
    return total(this.#reused);
  }

  /**
   * Base-2 logarithm of the odds that a page of each use is asked for again, against `reference`, into `out`, one entry a use.
   *
   * @param reference the probability that has odds of 0, above 0
   */
  logOdds(reference: number, out: Float64Array): void {
    const average = (this.reused + GROUP_PRIOR * reference) / (this.seen + GROUP_PRIOR);
    const base = Math.log2(average / reference);
    for (let use = 0; use < NUM_USES; use++) {
      const odds = base + this.#logOdds(partOf(use), average) + this.#logOdds(NUM_PARTS + answerLengthOf(use), average);
      out[use] = Math.max(-MOST_HALVINGS, Math.min(MOST_DOUBLINGS, odds));
    }
  }

  #logOdds(index: number, average: number): number {
    return Math.log2((this.#reused[index] + PRIOR * average) / ((this.#seen[index] + PRIOR) * average));
  }

  #count(counts: Float64Array, use: PageUse): void {
    counts[partOf(use)]++;
    counts[NUM_PARTS + answerLengthOf(use)]++;
  }

  #fade(): void {
    for (let i = 0; i < this.#seen.length; i++) {
      this.#seen[i] /= 2;
      this.#reused[i] /= 2;
    }
  }
}

function total(counts: Float64Array): number {
  let sum = 0;
  for (let part = 0; part < NUM_PARTS; part++) sum += counts[part];
  return sum;
}
