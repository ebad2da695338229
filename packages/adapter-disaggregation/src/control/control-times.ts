import { ControlError } from './control-error.ts';

/** How long those on the control plane wait, in milliseconds. Both sides of a job should have the same. */
export interface ControlTimes {
  /** A worker says how it is this often. */
  readonly heartbeatMs: number;
  /** A worker that was silent for so long is gone. */
  readonly expiryMs: number;
  /** A job that nobody has taken by then is offered anew, under a new generation. */
  readonly takeMs: number;
  /** A worker says this often that it is still at a job, and a result is said again until it was heard. */
  readonly progressMs: number;
  /** A job of which nothing was heard for so long is given up: by who asked, who tries again, and by who does it. */
  readonly leaseMs: number;
  /** Before a job is tried again. */
  readonly retryMs: number;
  /** A job for which there has been no worker for so long fails. */
  readonly noWorkerMs: number;
  /** Jobs fail, and are stopped, when the control plane was away for so long. */
  readonly controlLostMs: number;
}

export const DEFAULT_CONTROL_TIMES: ControlTimes = {
  heartbeatMs: 2_000,
  expiryMs: 7_000,
  takeMs: 2_000,
  progressMs: 2_000,
  leaseMs: 15_000,
  retryMs: 200,
  noWorkerMs: 10_000,
  controlLostMs: 30_000,
};

/** @throws {ControlError} `invalid-control-options` */
export function controlTimes(some: Partial<ControlTimes> = {}): ControlTimes {
  const times = { ...DEFAULT_CONTROL_TIMES, ...some };
  const areSound =
    Object.values(times).every((time) => time > 0 && time < 2 ** 31) &&
    times.heartbeatMs * 2 <= times.expiryMs &&
    times.progressMs * 2 <= times.leaseMs;
  if (areSound) return times;
  throw new ControlError(
    'invalid-control-options',
    `times are ${JSON.stringify(times)} ms: above 0, below 2^31, expiryMs at least twice heartbeatMs, leaseMs at least twice progressMs`,
  );
}
