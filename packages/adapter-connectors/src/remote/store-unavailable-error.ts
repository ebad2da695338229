import { BufferwiseError } from '@bufferwise/core-policy';

/** A page store was asked for a list, and what it keeps its pages in gave none. A part of a list would be a wrong answer. */
export class StoreUnavailableError extends BufferwiseError {
  declare readonly code: 'store-unavailable';

  /** @param message which store, what happened, and the way out */
  constructor(message: string, options?: { cause?: unknown }) {
    super('store-unavailable', message, options);
  }
}
