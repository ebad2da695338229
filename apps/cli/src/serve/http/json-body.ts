import { ApiError } from './api-error.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The value of a body.
 *
 * @throws {ApiError} 400 on bytes that are not UTF-8, text that is not JSON, and JSON that is no object
 */
export function parseJsonBody(bytes: Uint8Array): Record<string, unknown> {
  const value = parse(decode(bytes));
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw bad('the body must be a JSON object');
}

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch (cause) {
    throw bad('the body is not UTF-8', cause);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw bad(`the body is not JSON: ${(cause as Error).message}`, cause);
  }
}

function bad(message: string, cause?: unknown): ApiError {
  return new ApiError(message, { status: 400, code: 'invalid_json', cause });
}
