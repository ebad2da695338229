/**
 * Joins neighbouring pieces of a text, beginning with its characters, as long as two of them together are a piece: always the
 * pair of the highest score, of equal ones the leftmost. Takes time in proportion to n log n of the length.
 *
 * @param scoreOf of a piece; undefined for a text that is none
 * @returns pieces that together are the text; characters that are no pieces stand alone
 */
export function mergePieces(text: string, scoreOf: (piece: string) => number | undefined): string[] {
  const pieces: (string | undefined)[] = Array.from(text);
  const previous = pieces.map((_, i) => i - 1);
  const next = pieces.map((_, i) => i + 1);
  const queue = new PairQueue();
  const offer = (left: number): void => {
    const right = next[left];
    if (left < 0 || right >= pieces.length) return;
    const joined = `${pieces[left]}${pieces[right]}`;
    const score = scoreOf(joined);
    if (score !== undefined) queue.push({ left, right, joined, score });
  };
  for (let i = 0; i < pieces.length; i++) offer(i);
  for (let pair = queue.pop(); pair !== undefined; pair = queue.pop()) {
    const { left, right, joined } = pair;
    // Pieces only grow, so a pair is still there when its text is.
    const found = pieces[left] !== undefined && pieces[right] !== undefined && next[left] === right;
    if (!found || `${pieces[left]}${pieces[right]}` !== joined) continue;
    pieces[left] = joined;
    pieces[right] = undefined;
    next[left] = next[right];
    if (next[left] < pieces.length) previous[next[left]] = left;
    offer(previous[left]);
    offer(left);
  }
  return pieces.filter((piece) => piece !== undefined);
}

interface Pair {
  left: number;
  right: number;
  joined: string;
  score: number;
}

/** A binary heap: the best pair on top. */
class PairQueue {
  readonly #heap: Pair[] = [];

  push(pair: Pair): void {
    let at = this.#heap.push(pair) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!comesFirst(pair, this.#heap[parent])) break;
      this.#heap[at] = this.#heap[parent];
      at = parent;
    }
    this.#heap[at] = pair;
  }

  pop(): Pair | undefined {
    const top = this.#heap[0];
    const last = this.#heap.pop();
    if (last === undefined || this.#heap.length === 0) return top;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.#heap.length) break;
      if (child + 1 < this.#heap.length && comesFirst(this.#heap[child + 1], this.#heap[child])) child++;
      if (!comesFirst(this.#heap[child], last)) break;
      this.#heap[at] = this.#heap[child];
      at = child;
    }
    this.#heap[at] = last;
    return top;
  }
}

function comesFirst(a: Pair, b: Pair): boolean {
  return a.score > b.score || (a.score === b.score && a.left < b.left);
}
