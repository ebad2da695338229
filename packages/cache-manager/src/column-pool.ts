/** Shorter columns cost less to make than to keep. */
const LEAST_LOG = 8;
const MOST_LOG = 24;
/** What the columns of one length that wait to be used again may take, in bytes. */
const MOST_WAITING_BYTES = 8 << 20;

/**
 * Columns of closed requests for those to come: a long prompt needs a large one, which the process would have to clear and to map
 * first. Lengths are powers of two. What a column holds is what its last owner left there.
 */
export class ColumnPool {
  readonly #waiting: Uint32Array[][] = Array.from({ length: MOST_LOG + 1 }, () => []);

  /** A column with room for at least `length` entries; undefined when such short or long ones are not pooled. */
  take(length: number): Uint32Array | undefined {
    const log = 32 - Math.clz32(length - 1);
    if (log < LEAST_LOG || log > MOST_LOG) return undefined;
    return this.#waiting[log].pop() ?? new Uint32Array(1 << log);
  }

  /** Takes a column back, whose owner forgets it. One that did not come from here is left to the collector. */
  give(column: Uint32Array): void {
    const log = 31 - Math.clz32(column.length);
    if (log < LEAST_LOG || log > MOST_LOG || column.length !== 1 << log) return;
    const waiting = this.#waiting[log];
    if ((waiting.length + 1) * column.byteLength <= MOST_WAITING_BYTES) waiting.push(column);
  }
}
