import { BufferwiseError } from '@bufferwise/core-policy';

/** Why a job was not done, or the control plane could not be used. */
export type ControlErrorCode =
  | 'invalid-control-options'
  | 'invalid-control-message'
  | 'invalid-job'
  | 'no-worker'
  | 'control-lost'
  | 'control-closed'
  | 'job-timeout'
  | 'job-failed'
  | 'job-refused';

/** A job ended without an answer, or was none. Nothing of it is held by any worker that can be reached. */
export class ControlError extends BufferwiseError {
  declare readonly code: ControlErrorCode;

  /** @param message what was wrong, where, and the way out */
  constructor(code: ControlErrorCode, message: string, options?: { cause?: unknown }) {
    super(code, message, options);
  }
}
