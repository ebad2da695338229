import { AdapterError, type DecodedFrame, decodeFrame, FRAME_HEADER_BYTES, MAX_REQUEST_BYTES } from '@bufferwise/adapter-kit';
import { ByteQueue } from './byte-queue.ts';

/** A frame and the seal behind it, as they came. */
export interface FrameRecord {
  readonly frame: DecodedFrame;
  /** The bytes of the frame, as the seal was made of. */
  readonly bytes: Uint8Array;
  /** Empty on a link without a key. */
  readonly seal: Uint8Array;
}

/**
 * Finds frames in bytes that come in any portions. It keeps at most what was pushed: nothing is made room for because a header asks
 * for it, and a header that asks for too much ends the reading.
 */
export class FrameReader {
  readonly #queue: ByteQueue;
  readonly #maxBodyBytes: number;
  readonly #sealBytes: number;
  /** Bytes of the record whose header was read; 0 before it was. */
  #recordBytes = 0;

  constructor(options: { queue?: ByteQueue; maxBodyBytes: number; sealBytes: number }) {
    this.#queue = options.queue ?? new ByteQueue();
    this.#maxBodyBytes = options.maxBodyBytes;
    this.#sealBytes = options.sealBytes;
  }

  /** Bytes that came and belong to no frame yet. */
  get length(): number {
    return this.#queue.length;
  }

  push(chunk: Uint8Array): void {
    this.#queue.push(chunk);
  }

  /**
   * The next frame; null while it is not all there.
   *
   * @throws {AdapterError} `frame-damaged` when nobody knows where the next frame begins
   */
  next(): FrameRecord | null {
    if (this.#recordBytes === 0) {
      const header = this.#queue.peek(FRAME_HEADER_BYTES);
      if (header === null) return null;
      this.#recordBytes = frameBytes(header, this.#maxBodyBytes) + this.#sealBytes;
    }
    const record = this.#queue.take(this.#recordBytes);
    if (record === null) return null;
    const bytes = record.subarray(0, this.#recordBytes - this.#sealBytes);
    this.#recordBytes = 0;
    return { frame: decoded(bytes, this.#maxBodyBytes) as DecodedFrame, bytes, seal: record.subarray(bytes.length) };
  }
}

/** Bytes of a frame, by its header alone. */
function frameBytes(header: Uint8Array, maxBodyBytes: number): number {
  // Checks the sum and the bounds of the header; the frame itself is not there yet.
  decoded(header, maxBodyBytes);
  const view = new DataView(header.buffer, header.byteOffset, header.length);
  const nameBytes = view.getUint16(6, true);
  if (nameBytes > MAX_REQUEST_BYTES)
    throw new AdapterError(
      'frame-damaged',
      `a frame with a name of ${nameBytes} bytes came, and ${MAX_REQUEST_BYTES} is the most`,
    );
  return FRAME_HEADER_BYTES + nameBytes + view.getUint32(20, true);
}

function decoded(bytes: Uint8Array, maxBodyBytes: number): DecodedFrame | null {
  try {
    return decodeFrame(bytes, maxBodyBytes);
  } catch (error) {
    if (error instanceof TypeError)
      throw new AdapterError('frame-damaged', 'a frame came whose name is no text; connect again', { cause: error });
    throw error;
  }
}
