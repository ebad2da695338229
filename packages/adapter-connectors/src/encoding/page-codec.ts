import type { ConnectorGroup } from '@bufferwise/adapter-kit';
import { blockKey, keyToHex, rootKey } from '@bufferwise/cache-manager/outside';
import { deflate, inflate } from './deflate.ts';
import { Int8Rows } from './int8-rows.ts';
import { isCompressible, joinPlanes, splitPlanes } from './planes.ts';

/** How pages are kept where room is dear. */
export interface PageEncoding {
  /** Deflates the bytes of numbers, sorted by their place in the number, where that gains anything. Loses nothing. Default true. */
  readonly compress?: boolean;
  /**
   * Keeps f32 and f16 numbers in 8 bits, with a scale for each row, in groups of attention, and with `states` in all: what comes back
   * differs by `max |x| / 254` of its row at most, and half a step of its type. Pages with numbers that are not finite are kept exactly. Only for
   * buffers whose `numbers` the layout tells. Default false.
   */
  readonly int8?: boolean | { readonly states?: boolean };
}

/** Bytes in front of an encoded page. */
export const FRAME_BYTES = 8;
const VERSION = 1;
const AS_IT_IS = 0;
const INT8_ROWS = 1;
/** Of numbers that nobody described: most are f32, and for others it costs nothing but a poorer ratio. */
const USUAL_ELEMENT_BYTES = 4;
const ELEMENT_BYTES = { f32: 4, f16: 2, int8: 1 } as const;

/**
 * Encodes pages of one group, and decodes them again. Little endian:
 *
 * | bytes | what                                                                             |
 * | ----- | -------------------------------------------------------------------------------- |
 * | 0     | version of this form, 1                                                          |
 * | 1     | 0: the bytes of the page; 1: as `Int8Rows` packs it                              |
 * | 2     | bytes of a number, into so many planes they are sorted: 1, 2 or 4                |
 * | 3     | which planes are deflated, one bit each                                          |
 * | 4–7   | bytes of the page                                                                |
 * | 8–    | the planes that are not deflated, then all others in one stream                  |
 *
 * No sum: whoever keeps it seals it.
 */
export class PageCodec {
  /** Whether what comes back is always what was given. */
  readonly isExact: boolean;
  /** 16 hexadecimal digits, equal for equal ways to keep numbers in 8 bits; null where none are. */
  readonly form: string | null;
  readonly #compress: boolean;
  readonly #int8: Int8Rows | null;
  readonly #elementBytes: number;

  /** @param group undefined for pages of which nothing is known */
  constructor(group: ConnectorGroup | undefined, { compress = true, int8 = false }: PageEncoding) {
    this.#compress = compress;
    const states = int8 !== false && int8 !== true && int8.states === true;
    this.#int8 = group === undefined || int8 === false ? null : Int8Rows.of(group, states);
    this.isExact = this.#int8 === null;
    this.form = this.#int8 && keyToHex(blockKey(rootKey(), utf8.encode(this.#int8.description))).slice(0, 16);
    this.#elementBytes = elementBytesOf(group);
  }

  /** Bytes that a page may have encoded: what does not shrink is kept as it is. */
  static maxBytes(pageBytes: number): number {
    return pageBytes + FRAME_BYTES;
  }

  /** @returns at most `FRAME_BYTES` more than the page; the caller owns it */
  async encode(page: Uint8Array): Promise<Uint8Array> {
    const packed = this.#int8?.pageBytes === page.length ? this.#int8.pack(page) : null;
    const payload = packed ?? page;
    const kind = packed === null ? AS_IT_IS : INT8_ROWS;
    const elementBytes = packed === null && page.length % this.#elementBytes === 0 ? this.#elementBytes : 1;
    const plain = () => framed({ kind, elementBytes: 1, mask: 0, pageBytes: page.length }, [payload]);
    if (!this.#compress || payload.length === 0) return plain();
    const planes = splitPlanes(payload, elementBytes);
    const chosen = planes.map(isCompressible);
    if (!chosen.includes(true)) return plain();
    const deflated = await deflate(joined(planes.filter((_, i) => chosen[i])));
    const kept = planes.filter((_, i) => !chosen[i]);
    if (deflated.length + kept.reduce((sum, plane) => sum + plane.length, 0) >= payload.length) return plain();
    const mask = chosen.reduce((bits, isChosen, i) => bits | (isChosen ? 1 << i : 0), 0);
    return framed({ kind, elementBytes, mask, pageBytes: page.length }, [...kept, deflated]);
  }

  /**
   * The page of an encoding; null when it is none, is of another form, or would have more than `maxPageBytes`. No memory is taken beyond the
   * size of the page and what stands in `inflate`.
   */
  async decode(encoded: Uint8Array, maxPageBytes: number): Promise<Uint8Array | null> {
    const frame = frameOf(encoded);
    if (frame === null || frame.pageBytes > maxPageBytes) return null;
    const { kind, elementBytes, mask, pageBytes } = frame;
    if (kind === INT8_ROWS && this.#int8?.pageBytes !== pageBytes) return null;
    const payloadBytes = kind === INT8_ROWS ? (this.#int8 as Int8Rows).packedBytes : pageBytes;
    if (payloadBytes % elementBytes !== 0) return null;
    const planes = await readPlanes(encoded.subarray(FRAME_BYTES), elementBytes, mask, payloadBytes / elementBytes);
    if (planes === null) return null;
    const payload = elementBytes === 1 ? planes[0] : joinPlanes(planes);
    return kind === INT8_ROWS ? (this.#int8 as Int8Rows).unpack(payload) : payload.slice();
  }
}

interface Frame {
  readonly kind: number;
  readonly elementBytes: number;
  readonly mask: number;
  readonly pageBytes: number;
}

const utf8 = new TextEncoder();

/** Bytes of a number, where all of a page have as many. */
function elementBytesOf(group: ConnectorGroup | undefined): number {
  const sizes = new Set(
    group?.buffers?.map(({ numbers }) => (numbers === undefined ? USUAL_ELEMENT_BYTES : ELEMENT_BYTES[numbers.type])),
  );
  if (sizes.size === 0) return USUAL_ELEMENT_BYTES;
  return sizes.size === 1 ? ([...sizes][0] as number) : 1;
}

function framed({ kind, elementBytes, mask, pageBytes }: Frame, parts: readonly Uint8Array[]): Uint8Array {
  const frame = new Uint8Array(FRAME_BYTES);
  frame.set([VERSION, kind, elementBytes, mask]);
  new DataView(frame.buffer).setUint32(4, pageBytes, true);
  return joined([frame, ...parts]);
}

function frameOf(encoded: Uint8Array): Frame | null {
  if (encoded.length < FRAME_BYTES) return null;
  const [version, kind, elementBytes, mask] = encoded;
  if (version !== VERSION || kind > INT8_ROWS || ![1, 2, 4].includes(elementBytes) || mask >= 1 << elementBytes) return null;
  return { kind, elementBytes, mask, pageBytes: new DataView(encoded.buffer, encoded.byteOffset).getUint32(4, true) };
}

/** The planes of a payload, in order; null unless there are exactly so many bytes. */
async function readPlanes(bytes: Uint8Array, numPlanes: number, mask: number, planeBytes: number): Promise<Uint8Array[] | null> {
  const isDeflated = Array.from({ length: numPlanes }, (_, i) => (mask & (1 << i)) !== 0);
  const numDeflated = isDeflated.filter(Boolean).length;
  const keptBytes = (numPlanes - numDeflated) * planeBytes;
  if (numDeflated === 0 ? bytes.length !== keptBytes : bytes.length < keptBytes) return null;
  const inflated = numDeflated === 0 ? null : await inflate(bytes.subarray(keptBytes), numDeflated * planeBytes);
  if (numDeflated > 0 && inflated === null) return null;
  const next = { kept: 0, inflated: 0 };
  return isDeflated.map((deflated) => {
    const from = deflated ? (inflated as Uint8Array) : bytes;
    const at = deflated ? next.inflated++ : next.kept++;
    return from.subarray(at * planeBytes, (at + 1) * planeBytes);
  });
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
