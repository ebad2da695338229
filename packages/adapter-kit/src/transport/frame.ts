import { crc32c } from '@bufferwise/cache-manager/outside';
import { AdapterError } from '../errors.ts';
import type { StreamId } from './page-transport.ts';

/** What a frame is about. */
export type FrameKind = 'message' | 'pages' | 'abort' | 'credit' | 'close';

const KINDS: readonly FrameKind[] = ['message', 'pages', 'abort', 'credit', 'close'];
/** `BWFR`, as the first four bytes. */
const MAGIC = 0x52465742;
const VERSION = 1;

/** Bytes in front of the request's name and the body. */
export const FRAME_HEADER_BYTES = 32;
/** Bytes that the name of a request may take in UTF-8. */
export const MAX_REQUEST_BYTES = 255;

export interface Frame {
  readonly kind: FrameKind;
  readonly stream: StreamId;
  /** Of pages: position of the first byte's page in its transfer. Of credit: bytes. Else 0. */
  readonly index: number;
  readonly body: Uint8Array;
}

/** A frame as it came: its body is not what was sent when it is damaged. */
export interface DecodedFrame extends Frame {
  /** Bytes that the frame took. */
  readonly bytes: number;
  readonly damaged: boolean;
}

const utf8 = new TextEncoder();
const text = new TextDecoder('utf-8', { fatal: true });

/**
 * A frame for a socket, or whatever else keeps bytes in order. Little endian:
 *
 * | bytes | what                                           |
 * | ----- | ---------------------------------------------- |
 * | 0–3   | `BWFR`                                         |
 * | 4     | version of this form, 1                        |
 * | 5     | kind                                           |
 * | 6–7   | bytes of the request's name                    |
 * | 8–11  | generation                                     |
 * | 12–15 | group                                          |
 * | 16–19 | index                                          |
 * | 20–23 | bytes of the body                              |
 * | 24–27 | CRC-32C of the name and the body               |
 * | 28–31 | CRC-32C of the bytes 0–27                      |
 * | 32–   | name in UTF-8, then body                       |
 *
 * The header has a sum of its own: while it holds, a damaged body costs one frame and not the connection.
 */
export function encodeFrame({ kind, stream, index, body }: Frame): Uint8Array {
  const name = utf8.encode(stream.request);
  const frame = new Uint8Array(FRAME_HEADER_BYTES + name.length + body.length);
  const view = new DataView(frame.buffer);
  view.setUint32(0, MAGIC, true);
  view.setUint8(4, VERSION);
  view.setUint8(5, KINDS.indexOf(kind));
  view.setUint16(6, name.length, true);
  view.setUint32(8, stream.generation, true);
  view.setUint32(12, stream.group, true);
  view.setUint32(16, index, true);
  view.setUint32(20, body.length, true);
  view.setUint32(24, crc32c(body, crc32c(name)), true);
  view.setUint32(28, crc32c(frame.subarray(0, 28)), true);
  frame.set(name, FRAME_HEADER_BYTES);
  frame.set(body, FRAME_HEADER_BYTES + name.length);
  return frame;
}

/**
 * The first frame of some bytes; null when they end before it does. Its body is a view into `bytes`.
 *
 * @param maxBodyBytes what a body may have
 * @throws {AdapterError} `frame-damaged` when its header is not whole: nobody knows where the next one begins then
 */
export function decodeFrame(bytes: Uint8Array, maxBodyBytes: number): DecodedFrame | null {
  if (bytes.length < FRAME_HEADER_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, FRAME_HEADER_BYTES);
  const kind = KINDS[view.getUint8(5)];
  const nameBytes = view.getUint16(6, true);
  const bodyBytes = view.getUint32(20, true);
  const isWhole = view.getUint32(28, true) === crc32c(bytes.subarray(0, 28));
  if (!isWhole || view.getUint32(0, true) !== MAGIC || view.getUint8(4) !== VERSION || kind === undefined)
    throw new AdapterError('frame-damaged', 'what came is no frame of this version; connect again');
  if (bodyBytes > maxBodyBytes)
    throw new AdapterError('frame-damaged', `a frame of ${bodyBytes} bytes came, and ${maxBodyBytes} is the most; connect again`);
  const end = FRAME_HEADER_BYTES + nameBytes + bodyBytes;
  if (bytes.length < end) return null;
  const name = bytes.subarray(FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + nameBytes);
  const body = bytes.subarray(FRAME_HEADER_BYTES + nameBytes, end);
  const damaged = view.getUint32(24, true) !== crc32c(body, crc32c(name));
  const stream = {
    request: damaged ? '' : text.decode(name),
    generation: view.getUint32(8, true),
    group: view.getUint32(12, true),
  };
  return { kind, stream, index: view.getUint32(16, true), body, bytes: end, damaged };
}
