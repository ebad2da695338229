/** Published traces of requests, read into prompts of token ids. The traces themselves are third parties' and not part of the repository. */
export { claudeCodeRequests, type SessionChoice } from './claude-code.ts';
export { lmcacheRequests } from './lmcache.ts';
export { mooncakeRequests } from './mooncake.ts';
export { parseLines, traceText } from './read-lines.ts';
export { readTrace, type Trace } from './read-trace.ts';
export { TraceError } from './trace-error.ts';
export { traceFolder } from './trace-folder.ts';
export { TRACE_FORMATS, type TraceFormat } from './trace-format.ts';
export type { TraceRequest } from './trace-request.ts';
