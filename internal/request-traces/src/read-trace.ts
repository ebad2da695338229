import { azureRequests } from './azure.ts';
import { claudeCodeRequests, type SessionChoice } from './claude-code.ts';
import { lmcacheRequests } from './lmcache.ts';
import { mooncakeRequests } from './mooncake.ts';
import { parseLines, traceText } from './read-lines.ts';
import { TraceError } from './trace-error.ts';
import { formatOf, type TraceFormat } from './trace-format.ts';
import type { TraceRequest } from './trace-request.ts';

export interface Trace {
  format: TraceFormat;
  /** At least one, in the order they arrive in. */
  requests: TraceRequest[];
}

/**
 * Reads the file of a trace, as published or compressed with gzip.
 *
 * @param format default: told by the first line
 * @param sessions which sessions of a trace that has them; of others nothing is left out
 * @throws {TraceError} when it is of no known format, a line lacks something, or there is no request
 */
export function readTrace(file: Uint8Array, format?: TraceFormat, sessions?: SessionChoice): Trace {
  const text = traceText(file);
  const chosen = format ?? formatOf(text);
  const requests = requestsOf(text, chosen, sessions);
  if (requests.length === 0) throw new TraceError('the trace has no requests');
  return { format: chosen, requests };
}

function requestsOf(text: string, format: TraceFormat, sessions?: SessionChoice): TraceRequest[] {
  switch (format) {
    case 'mooncake':
      return mooncakeRequests(parseLines(text));
    case 'claude-code':
      return claudeCodeRequests(parseLines(text), sessions);
    case 'lmcache':
      return lmcacheRequests(parseLines(text));
    case 'azure':
      return azureRequests(text);
  }
}
