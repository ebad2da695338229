import { BufferwiseError } from '@bufferwise/core-policy';
import { DrainedError } from '../admission/endings.ts';
import { ApiError } from './api-error.ts';

/** Seconds after which a cache that is full may have room again. */
const TRY_AGAIN_SECONDS = 1;

/** Errors of the HTTP layer that say nothing a client could use, in other words. By their status. */
const WORDS: ReadonlyMap<number, readonly [string, string]> = new Map([
  [413, ['request_too_large', 'the body of the request is larger than this server takes']],
  [415, ['unsupported_media_type', 'the body must be JSON: send it with Content-Type: application/json']],
]);

/** What a client is told of anything that was thrown while its request was served. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof DrainedError) return new ApiError(error.message, { status: 503, code: 'stopping', cause: error });
  if (BufferwiseError.isInstance(error)) return ofBufferwise(error);
  const { statusCode: status, message } = error as { statusCode?: unknown; message?: string };
  if (typeof status !== 'number' || status < 400 || status >= 500) return internalError(error);
  const [code, words] = WORDS.get(status) ?? [null, message ?? 'the request cannot be read'];
  return new ApiError(words, { status, code, cause: error });
}

function ofBufferwise(error: BufferwiseError): ApiError {
  const { message, code } = error;
  switch (code) {
    case 'prompt-too-long':
      return new ApiError(message, { status: 400, code: 'context_length_exceeded', cause: error });
    case 'prompt-invalid':
    case 'model-input':
      return new ApiError(message, { status: 400, code: 'invalid_prompt', cause: error });
    case 'sampling-options':
      return new ApiError(message, { status: 400, code: 'invalid_value', cause: error });
    case 'cache-full':
      return new ApiError(message, { status: 503, code: 'cache_full', retryAfter: TRY_AGAIN_SECONDS, cause: error });
    case 'engine-closed':
    case 'device-lost':
      return new ApiError('the server is about to stop', { status: 503, code: 'stopping', cause: error });
    default:
      return internalError(error);
  }
}

/** A bug: nothing of it is told to a stranger. */
function internalError(cause: unknown): ApiError {
  return new ApiError('the server failed; its operator finds the reason in its log', { status: 500, code: 'internal', cause });
}
