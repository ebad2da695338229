import { BufferwiseError } from '@bufferwise/core-policy';

/** Why a call of a plugin failed. What is merely not there, or has no room, is an answer and no error. */
export type AdapterErrorCode =
  | 'plugin-closed'
  | 'plugin-spec-version'
  | 'invalid-page-key'
  | 'duplicate-page-key'
  | 'batch-too-large'
  | 'invalid-ttl'
  | 'unsupported-call'
  | 'layout-refused'
  | 'step-refused'
  | 'message-too-large'
  | 'invalid-stream'
  | 'peer-lost'
  | 'frame-damaged'
  | 'unknown-address'
  | 'unknown-request'
  | 'private-group'
  | 'call-order'
  | 'invalid-connector-layout'
  | 'invalid-connector-argument';

/** A plugin was called in a way that it cannot serve, or what it talks to is gone. Nothing has changed. */
export class AdapterError extends BufferwiseError {
  declare readonly code: AdapterErrorCode;

  /** @param message which plugin, what was wrong, and the way out */
  constructor(code: AdapterErrorCode, message: string, options?: { cause?: unknown }) {
    super(code, message, options);
  }
}
