import type { KvCacheManager, PageDevice } from '@bufferwise/cache-manager';
import { type Clock, systemClock } from '../clock.ts';
import { TransferError } from '../errors.ts';
import type { BufferForms } from '../transfer/transfer-layout.ts';
import { DEFAULT_TRANSFER_TIMES, type TransferTimes } from '../transfer/transfer-times.ts';

/** What an end of transfers works on. */
export interface TransferWorkerOptions {
  readonly manager: KvCacheManager;
  /** The manager's. */
  readonly device: PageDevice;
  /** Names the weights, and everything else that decides what is in a page: requests move between equal ones only. */
  readonly modelFingerprint: string;
  /** Says how buffers lie in pages, so that the other side may keep them otherwise. Default: nothing is known. */
  readonly forms?: BufferForms;
  /** Bytes of pages that the transport takes at a time: its `limits.maxPagesBytes`. Default 1 MiB. */
  readonly maxPagesBytes?: number;
  /** Transfers that are open at a time at most. Default 256. */
  readonly maxTransfers?: number;
  readonly times?: TransferTimes;
  readonly clock?: Clock;
}

export interface WorkerSettings {
  readonly maxPagesBytes: number;
  readonly maxTransfers: number;
  readonly times: TransferTimes;
  readonly clock: Clock;
}

/** @throws {TransferError} `invalid-transfer-options` */
export function workerSettings(options: TransferWorkerOptions): WorkerSettings {
  const { maxPagesBytes = 1 << 20, maxTransfers = 256, times = DEFAULT_TRANSFER_TIMES, clock = systemClock } = options;
  requireCount('maxPagesBytes', maxPagesBytes);
  requireCount('maxTransfers', maxTransfers);
  requireCount('times.leaseMs', times.leaseMs);
  requireCount('times.retryMs', times.retryMs);
  if (times.retryMs >= times.leaseMs)
    throw new TransferError(
      'invalid-transfer-options',
      `a question is asked again after ${times.retryMs} ms, but a silent side is given up after ${times.leaseMs} ms; make the lease several times as long`,
    );
  return { maxPagesBytes, maxTransfers, times, clock };
}

function requireCount(name: string, value: number): void {
  if (Number.isInteger(value) && value >= 1 && value < 2 ** 31) return;
  throw new TransferError('invalid-transfer-options', `${name} is ${value}; it must be a whole number from 1 on, below 2^31`);
}
