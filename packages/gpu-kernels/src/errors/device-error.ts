import { GpuError } from './gpu-error.ts';

/** Something wants more of a device than it has. */
export class DeviceLimitError extends GpuError {
  /** Name of the limit, as in `GPUSupportedLimits`. */
  readonly limit: string;
  /** What would be needed, in the unit of the limit (bytes for sizes). */
  readonly needed: number;
  /** What the device or adapter has. */
  readonly available: number;

  constructor(what: string, limit: string, needed: number, available: number, wayOut: string) {
    super('device-limit', `${what} needs ${limit} ${needed}, there is ${available}. ${wayOut}`);
    this.limit = limit;
    this.needed = needed;
    this.available = available;
  }
}

export type PoolErrorCode =
  /** A pool spec that no device could serve. */
  | 'pool-spec'
  /** The memory of a pool, or of the buffer through which it is read, could not be had. */
  | 'pool-out-of-memory'
  /** The driver refused the pool's buffer. */
  | 'pool-refused'
  /** The pool was destroyed, or belongs to another device. */
  | 'pool-unusable'
  /** A slot outside the pool, or bytes that do not hold the slots. */
  | 'pool-range'
  /** Bytes did not come back from the device. */
  | 'pool-read';

/** Pool memory could not be made or used. */
export class PoolError extends GpuError {
  /** The pool's label. */
  readonly pool: string;

  constructor(code: PoolErrorCode, pool: string, message: string, options?: { cause?: unknown }) {
    super(code, `${pool}: ${message}`, options);
    this.pool = pool;
  }
}
