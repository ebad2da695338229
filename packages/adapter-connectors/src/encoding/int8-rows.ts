import type { ConnectorGroup, PageBuffer } from '@bufferwise/adapter-kit';
import { decodeHalves, encodeHalves } from '@bufferwise/adapter-kit';

/** Whole rows of a page that are kept in 8 bits. */
interface Rows {
  readonly offset: number;
  readonly bytes: number;
  readonly type: 'f32' | 'f16';
  readonly rowLength: number;
  readonly numRows: number;
}

const NUMBER_BYTES = { f32: 4, f16: 2 } as const;
/** Of f32 without loss of precision: below it a scale would not hold its bound. */
const MIN_SCALE = 2 ** -126;

/**
 * Rows of f32 and f16 numbers in 8 bits and a scale for each row: `scale = max |x| / 127`, `q = round(x / scale)`. What comes back,
 * `x' = q × scale`, is as near as `|x - x'| <= max |x| / 254`, and half a step of the type of the numbers on top. All other bytes stay as they are.
 *
 * Packed: the scales of all rows in f32, then the numbers of all rows, then the other bytes; each in the order of the page.
 */
export class Int8Rows {
  readonly pageBytes: number;
  readonly packedBytes: number;
  /** Equal for equal ways to pack: what is packed in another one is none of this. */
  readonly description: string;
  readonly #rows: readonly Rows[];
  readonly #numRows: number;
  readonly #numNumbers: number;

  /** @returns null where a page of the group has no such rows: nobody said where, or there are none */
  static of({ buffers, pageBytes, lifecycle }: ConnectorGroup, states: boolean): Int8Rows | null {
    if (buffers === undefined || (lifecycle.kind === 'ssm' && !states)) return null;
    const rows = buffers.flatMap(rowsOf);
    const isSound = rows.every(
      ({ offset, bytes }, i) => offset >= (i === 0 ? 0 : end(rows[i - 1])) && offset + bytes <= pageBytes,
    );
    return rows.length === 0 || !isSound ? null : new Int8Rows(rows, pageBytes);
  }

  private constructor(rows: readonly Rows[], pageBytes: number) {
    this.#rows = rows;
    this.pageBytes = pageBytes;
    this.#numRows = rows.reduce((sum, { numRows }) => sum + numRows, 0);
    this.#numNumbers = rows.reduce((sum, { numRows, rowLength }) => sum + numRows * rowLength, 0);
    const rowBytes = rows.reduce((sum, { bytes }) => sum + bytes, 0);
    this.packedBytes = 4 * this.#numRows + this.#numNumbers + (pageBytes - rowBytes);
    this.description = JSON.stringify(rows.map(({ offset, bytes, type, rowLength }) => [offset, bytes, type, rowLength]));
  }

  /** @returns null when a number has no place in a row with a scale: it is not finite, or all of its row are next to nothing */
  pack(page: Uint8Array): Uint8Array | null {
    const packed = new Uint8Array(this.packedBytes);
    const scales = new Float32Array(packed.buffer, 0, this.#numRows);
    const numbers = new Int8Array(packed.buffer, 4 * this.#numRows, this.#numNumbers);
    let row = 0;
    let at = 0;
    for (const { offset, bytes, type, rowLength, numRows } of this.#rows) {
      const values = numbersOf(page.slice(offset, offset + bytes), type);
      for (let first = 0; first < numRows * rowLength; first += rowLength) {
        let largest = 0;
        for (let i = first; i < first + rowLength; i++) {
          // Written so that a NaN is found, too.
          if (!(Math.abs(values[i]) < Number.POSITIVE_INFINITY)) return null;
          largest = Math.max(largest, Math.abs(values[i]));
        }
        const scale = Math.fround(largest / 127);
        if (largest > 0 && scale < MIN_SCALE) return null;
        scales[row++] = scale;
        for (let i = first; i < first + rowLength; i++) numbers[at++] = scale === 0 ? 0 : Math.round(values[i] / scale);
      }
    }
    this.#copyRest(page, (rest, restAt) => packed.set(rest, restAt));
    return packed;
  }

  /** @param packed `packedBytes` of them */
  unpack(packed: Uint8Array): Uint8Array {
    const own = packed.slice();
    const scales = new Float32Array(own.buffer, 0, this.#numRows);
    const numbers = new Int8Array(own.buffer, 4 * this.#numRows, this.#numNumbers);
    const page = new Uint8Array(this.pageBytes);
    let row = 0;
    let at = 0;
    for (const { offset, type, rowLength, numRows } of this.#rows) {
      const values = new Float32Array(numRows * rowLength);
      for (let first = 0; first < values.length; first += rowLength) {
        const scale = scales[row++];
        for (let i = first; i < first + rowLength; i++) values[i] = numbers[at++] * scale;
      }
      page.set(bytesOf(values, type), offset);
    }
    this.#copyRest(page, (rest, restAt) => rest.set(own.subarray(restAt, restAt + rest.length)));
    return page;
  }

  /** The bytes of a page that are in no row, and where they are packed. */
  #copyRest(page: Uint8Array, copy: (rest: Uint8Array, at: number) => void): void {
    let at = 4 * this.#numRows + this.#numNumbers;
    let begin = 0;
    for (const { offset, bytes } of [...this.#rows, { offset: this.pageBytes, bytes: 0 }]) {
      const rest = page.subarray(begin, offset);
      copy(rest, at);
      at += rest.length;
      begin = offset + bytes;
    }
  }
}

function rowsOf({ offset, bytes, numbers }: PageBuffer): Rows[] {
  if (numbers === undefined || numbers.type === 'int8') return [];
  const { type, rowLength } = numbers;
  const numRows = bytes / (rowLength * NUMBER_BYTES[type]);
  return Number.isInteger(numRows) ? [{ offset, bytes, type, rowLength, numRows }] : [];
}

const end = ({ offset, bytes }: Rows) => offset + bytes;

/** @param bytes at the start of a buffer of their own */
function numbersOf(bytes: Uint8Array, type: 'f32' | 'f16'): Float32Array {
  return type === 'f32' ? new Float32Array(bytes.buffer) : decodeHalves(new Uint16Array(bytes.buffer));
}

function bytesOf(values: Float32Array, type: 'f32' | 'f16'): Uint8Array {
  return new Uint8Array(type === 'f32' ? values.buffer : encodeHalves(values).buffer);
}
