import { TraceError } from './trace-error.ts';

/**
 * Whose fields a trace has: `mooncake` hash ids of 512-token blocks; `claude-code` sessions with runs of hash ids of 64-token blocks;
 * `lmcache` token ids behind what an earlier line has; `azure` lengths alone, so that nothing is shared.
 */
export type TraceFormat = 'mooncake' | 'claude-code' | 'lmcache' | 'azure';

export const TRACE_FORMATS: readonly TraceFormat[] = ['mooncake', 'claude-code', 'lmcache', 'azure'];

/**
 * Tells the format by the first line.
 *
 * @throws {TraceError} when it is none of them
 */
export function formatOf(text: string): TraceFormat {
  const [line] = text.trimStart().split('\n', 1);
  if (/^timestamp,/i.test(line)) return 'azure';
  const fields = fieldsOf(line);
  if ('requests' in fields) return 'claude-code';
  if ('hash_ids' in fields) return 'mooncake';
  if ('input' in fields) return 'lmcache';
  throw new TraceError(
    `the first line is of no known trace; it has "hash_ids" (mooncake), "requests" (claude-code), "input" (lmcache), or begins with TIMESTAMP (azure)`,
  );
}

function fieldsOf(line: string): object {
  try {
    const parsed: unknown = JSON.parse(line);
    return typeof parsed === 'object' && parsed !== null ? parsed : {};
  } catch {
    return {};
  }
}
