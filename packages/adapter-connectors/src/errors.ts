import { BufferwiseError } from '@bufferwise/core-policy';

/** Why a store or a connector cannot be made. What happens to single pages is an answer and no error. */
export type ConnectorErrorCode =
  | 'store-locked'
  | 'invalid-option'
  | 'no-opfs'
  | 'no-indexeddb'
  | 'no-browser-store'
  | 'worker-lost';

/** Something of this package was asked for what it cannot do. Nothing has changed. */
export class ConnectorError extends BufferwiseError {
  declare readonly code: ConnectorErrorCode;

  /** @param message what was wrong, where, and the way out */
  constructor(code: ConnectorErrorCode, message: string, options?: { cause?: unknown }) {
    super(code, message, options);
  }
}
