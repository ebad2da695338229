import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  claudeCodeRequests,
  lmcacheRequests,
  mooncakeRequests,
  parseLines,
  type TraceRequest,
  traceText,
} from '@bufferwise-internal/request-traces';

export const WORKLOADS = ['conv', 'syn', 'claude', 'miniswe', 'magagent'] as const;
export type WorkloadName = (typeof WORKLOADS)[number];

/** A stretch of a trace and the size of the machine that serves it. */
export interface Workload {
  name: WorkloadName;
  requests: TraceRequest[];
  /** Tokens that the pages of full attention hold. */
  capacity: number;
  /** Requests that run at a time, at most. */
  maxRunning: number;
}

const MAX_PROMPT = 131_072;
const CLAUDE_CHOICE = { sessions: 16, turns: 24, maxPrompt: MAX_PROMPT };

/** Reads a workload from the folder of the traces, `skip` requests further on in the trace. `limit` cuts it to its first requests. */
export function readWorkload(folder: string, name: WorkloadName, { skip = 0, limit = Number.POSITIVE_INFINITY } = {}): Workload {
  const requests = (): TraceRequest[] => {
    switch (name) {
      case 'conv':
        return firstFitting(mooncakeRequests(readLines(folder, 'mooncake_conversation_first70.jsonl.gz')), skip + 2000);
      case 'syn':
        return firstFitting(mooncakeRequests(readLines(folder, 'mooncake_synthetic.jsonl.gz')), skip + 1200);
      case 'claude':
        return claudeCodeRequests(readLines(folder, 'claude_code_agentic_mod5.jsonl.gz'), CLAUDE_CHOICE);
      case 'miniswe':
        return lmcacheRequests(readLines(folder, 'lmcache_agent_miniswe.jsonl.gz'));
      case 'magagent':
        return lmcacheRequests(readLines(folder, 'lmcache_agent_magagent.jsonl.gz'));
    }
  };
  return { name, requests: requests().slice(skip, skip + limit), ...SIZES[name] };
}

const SIZES: Record<WorkloadName, { capacity: number; maxRunning: number }> = {
  conv: { capacity: 4_194_304, maxRunning: 64 },
  syn: { capacity: 4_194_304, maxRunning: 64 },
  claude: { capacity: 2_097_152, maxRunning: 16 },
  miniswe: { capacity: 1_048_576, maxRunning: 32 },
  magagent: { capacity: 524_288, maxRunning: 32 },
};

const readLines = (folder: string, file: string) => parseLines(traceText(readFileSync(join(folder, file))));

/** The first `count` requests whose prompt is not too long. */
function firstFitting(requests: readonly TraceRequest[], count: number): TraceRequest[] {
  return requests.filter(({ promptLength }) => promptLength <= MAX_PROMPT).slice(0, count);
}
