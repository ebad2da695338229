import { PoolError } from '../errors/device-error.ts';
import { BUFFER_USAGE, MAP_READ } from '../kernel/gpu-flags.ts';
import { DeviceLoss, DeviceLostError } from './device-lost.ts';

/** Bytes `[offset, offset + size)` of a buffer, multiples of 4. */
export interface ReadRange {
  buffer: GPUBuffer;
  offset: number;
  size: number;
}

interface Chunk {
  readonly staging: GPUBuffer;
  /** Bytes used of it, and where they go in the target. */
  readonly size: number;
  readonly targetOffset: number;
  readonly mapped: Promise<void>;
}

const MIN_STAGING_BYTES = 64 * 1024;
const MAX_STAGING_BYTES = 16 * 2 ** 20;

/**
 * Brings bytes back from the device through mappable buffers that are used again and again.
 *
 * The copies are submitted before `read` returns, so later work may overwrite the source at once. Hence the bytes under way
 * are bounded by the caller (`bytesInFlight` tells); what this class bounds is the memory it keeps while nothing is under way.
 */
export class Readback {
  readonly #device: GPUDevice;
  readonly #loss: DeviceLoss;
  readonly #keepBytes: number;
  readonly #idle: GPUBuffer[] = [];
  #idleBytes = 0;
  #bytesInFlight = 0;

  /** @param keepBytes mappable memory kept for later reads */
  constructor(device: GPUDevice, keepBytes: number) {
    this.#device = device;
    this.#loss = new DeviceLoss(device);
    this.#keepBytes = keepBytes;
  }

  /** Bytes of mappable buffers that reads are waiting on. */
  get bytesInFlight(): number {
    return this.#bytesInFlight;
  }

  /** Bytes of mappable buffers kept for the next read. */
  get idleBytes(): number {
    return this.#idleBytes;
  }

  /**
   * Copies ranges into `target`, one after the other without gaps.
   * @param label names the source for people
   * @throws {DeviceLostError} when the device is gone, {PoolError} `pool-out-of-memory` or `pool-read` otherwise (as a rejection);
   *   `target` is undefined then
   */
  async read(label: string, ranges: readonly ReadRange[], target: Uint8Array): Promise<void> {
    const chunks = this.#submit(label, ranges);
    const failures = (
      await Promise.all(
        chunks.map(async (chunk) => {
          try {
            await chunk.mapped;
            target.set(new Uint8Array(chunk.staging.getMappedRange(0, chunk.size)), chunk.targetOffset);
            chunk.staging.unmap();
            this.#giveBack(chunk.staging, true);
            return undefined;
          } catch (error) {
            this.#giveBack(chunk.staging, false);
            return error;
          }
        }),
      )
    ).filter((error) => error !== undefined);
    if (failures.length === 0) return;
    const cause = await this.#loss.reasonOf(failures[0]);
    if (cause instanceof DeviceLostError) throw cause;
    if (cause instanceof PoolError) throw cause;
    throw new PoolError('pool-read', label, `the bytes did not come back from the device: ${(cause as Error).message}`, {
      cause,
    });
  }

  /** Destroys the kept buffers. Reads under way end first. */
  destroy(): void {
    for (const buffer of this.#idle.splice(0)) buffer.destroy();
    this.#idleBytes = 0;
  }

  #submit(label: string, ranges: readonly ReadRange[]): Chunk[] {
    const total = ranges.reduce((sum, range) => sum + range.size, 0);
    if (total === 0) return [];
    const device = this.#device;
    device.pushErrorScope('validation');
    device.pushErrorScope('out-of-memory');
    const encoder = device.createCommandEncoder({ label: `bufferwise read ${label}` });
    const plan: { staging: GPUBuffer; size: number; targetOffset: number }[] = [];
    let rangeIndex = 0;
    let rangeDone = 0;
    for (let targetOffset = 0; targetOffset < total; ) {
      const size = Math.min(total - targetOffset, MAX_STAGING_BYTES);
      const staging = this.#take(size);
      for (let filled = 0; filled < size; ) {
        const range = ranges[rangeIndex];
        const piece = Math.min(range.size - rangeDone, size - filled);
        if (piece > 0) encoder.copyBufferToBuffer(range.buffer, range.offset + rangeDone, staging, filled, piece);
        filled += piece;
        rangeDone += piece;
        if (rangeDone === range.size) {
          rangeIndex++;
          rangeDone = 0;
        }
      }
      plan.push({ staging, size, targetOffset });
      targetOffset += size;
    }
    device.queue.submit([encoder.finish()]);
    const mappings = plan.map(({ staging, size }) => staging.mapAsync(MAP_READ, 0, size));
    const outOfMemory = device.popErrorScope();
    const validation = device.popErrorScope();
    return plan.map((chunk, i) => ({ ...chunk, mapped: mapped(label, mappings[i], outOfMemory, validation) }));
  }

  /** A mappable buffer of at least `size` bytes, in steps of powers of two so that reads of like size find one. */
  #take(size: number): GPUBuffer {
    const bytes = 2 ** Math.ceil(Math.log2(Math.max(size, MIN_STAGING_BYTES)));
    this.#bytesInFlight += bytes;
    const at = this.#idle.findIndex((buffer) => buffer.size === bytes);
    if (at >= 0) {
      this.#idleBytes -= bytes;
      return this.#idle.splice(at, 1)[0];
    }
    return this.#device.createBuffer({
      label: 'bufferwise readback',
      size: bytes,
      usage: BUFFER_USAGE.MAP_READ | BUFFER_USAGE.COPY_DST,
    });
  }

  #giveBack(buffer: GPUBuffer, usable: boolean): void {
    this.#bytesInFlight -= buffer.size;
    if (!usable || buffer.size > this.#keepBytes) {
      buffer.destroy();
      return;
    }
    this.#idle.push(buffer);
    this.#idleBytes += buffer.size;
    while (this.#idleBytes > this.#keepBytes) {
      const oldest = this.#idle.shift() as GPUBuffer;
      this.#idleBytes -= oldest.size;
      oldest.destroy();
    }
  }
}

/** A mapping is good when it arrived and neither its buffer nor the copy into it failed. */
async function mapped(
  label: string,
  mapping: Promise<undefined>,
  outOfMemory: Promise<GPUError | null>,
  validation: Promise<GPUError | null>,
): Promise<void> {
  const [mapResult, memoryError, validationError] = await Promise.all([
    mapping.then(
      () => undefined,
      (error: unknown) => error,
    ),
    outOfMemory,
    validation,
  ]);
  if (memoryError) {
    throw new PoolError(
      'pool-out-of-memory',
      label,
      `no mappable buffer to read through: ${memoryError.message} Read fewer slots at once.`,
      {
        cause: memoryError,
      },
    );
  }
  if (validationError)
    throw new PoolError('pool-read', label, `the copy was refused: ${validationError.message}`, { cause: validationError });
  if (mapResult !== undefined) throw mapResult;
}
