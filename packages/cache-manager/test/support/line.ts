import { combined, type Stamp, type Token, withToken } from './stamp.ts';

/** From the token at `from` on, what a group holds of a line is nobody else's. */
interface Mark {
  readonly from: number;
  readonly mark: Stamp;
}

/** One sequence of tokens that a request computes, and the stamps that its pages must hold. A request has one for each beam. */
export class Line {
  /** Tokens that were computed, as far as they were not taken back. */
  readonly text: Token[] = [];
  /** Stamp of the first n tokens, at n. */
  readonly #prefix: Stamp[];
  /** Marks of each group, the last one counts. None where others may share what the group holds. */
  readonly #marks: Mark[][];

  constructor(start: Stamp, tokens: readonly Token[], numGroups: number) {
    this.#prefix = [start];
    this.#marks = Array.from({ length: numGroups }, () => []);
    this.append(tokens);
  }

  /** The same line for somebody else to go on with. What was not shared so far is shared no more from here on. */
  parted(nextMark: () => Stamp): Line {
    const line = new Line(this.#prefix[0], this.text, this.#marks.length);
    for (const [group, marks] of this.#marks.entries()) {
      line.#marks[group].push(...marks);
      if (marks.length > 0) line.mark(group, nextMark());
    }
    return line;
  }

  /** The same line up to a count, with nothing that is nobody else's. */
  again(count: number): Line {
    return new Line(this.#prefix[0], this.text.slice(0, count), this.#marks.length);
  }

  append(tokens: readonly Token[]): void {
    for (const token of tokens) {
      this.text.push(token);
      this.#prefix.push(withToken(this.#prefix[this.#prefix.length - 1], token));
    }
  }

  forget(count: number): void {
    this.text.length = Math.min(this.text.length, count);
    this.#prefix.length = this.text.length + 1;
  }

  /** Marks what a group computes from here on, or with `from` 0 all that it has, as this line's own. */
  mark(group: number, mark: Stamp, from = this.text.length): void {
    this.#marks[group].push({ from, mark });
  }

  /** What a buffer of a group must hold for token `count - 1`, or as the state after `count` tokens. */
  stamp(identity: Stamp, group: number, count: number): Stamp {
    const stamp = combined(this.#prefix[count], identity);
    const mark = this.#marks[group].findLast(({ from }) => from === 0 || from < count);
    return mark === undefined ? stamp : combined(stamp, mark.mark);
  }
}
