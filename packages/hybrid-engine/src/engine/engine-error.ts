import { BufferwiseError } from '@bufferwise/core-policy';

/** Why the engine refused or stopped a request. Stable within a major version. */
export type EngineErrorCode =
  /** An option of the engine or of a request is out of its range. */
  | 'engine-options'
  /** The prompt has no tokens, or a token that the model does not have. */
  | 'prompt-invalid'
  /** A request that came from another worker is not at the last token of its prompt. */
  | 'arrival-invalid'
  /** The prompt and its answer can never fit into the cache. */
  | 'prompt-too-long'
  /** The cache has no room for the next tokens now; other requests hold it. */
  | 'cache-full'
  /** The engine was closed. */
  | 'engine-closed';

/** The engine refused or stopped a request; the request holds nothing any more. */
export class EngineError extends BufferwiseError {
  declare readonly code: EngineErrorCode;

  constructor(code: EngineErrorCode, message: string, options?: { cause?: unknown }) {
    super(code, message, options);
  }
}
