import { BufferwiseError } from '@bufferwise/core-policy';

/** Why a request could not be moved, or two workers could not meet. */
export type TransferErrorCode =
  | 'invalid-transport-options'
  | 'invalid-transfer-options'
  | 'too-many-transfers'
  | 'peer-not-authenticated'
  | 'layout-mismatch'
  | 'invalid-transfer-message';

/** Two workers could not work together. Nothing is held any more on this side. */
export class TransferError extends BufferwiseError {
  declare readonly code: TransferErrorCode;

  /** @param message what was wrong, where, and the way out */
  constructor(code: TransferErrorCode, message: string, options?: { cause?: unknown }) {
    super(code, message, options);
  }
}
