import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { hashedRequest, type TraceRequest } from './trace-request.ts';

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

/** Reads a workload from the folder of the traces, `skip` requests further on in the trace. `limit` cuts it to its first requests. */
export function readWorkload(folder: string, name: WorkloadName, { skip = 0, limit = Number.POSITIVE_INFINITY } = {}): Workload {
  const requests = (): TraceRequest[] => {
    switch (name) {
      case 'conv':
        return mooncake(readLines(folder, 'mooncake_conversation_first70.jsonl.gz'), skip + 2000);
      case 'syn':
        return mooncake(readLines(folder, 'mooncake_synthetic.jsonl.gz'), skip + 1200);
      case 'claude':
        return claude(readLines(folder, 'claude_code_agentic_mod5.jsonl.gz'));
      case 'miniswe':
        return lmcache(readLines(folder, 'lmcache_agent_miniswe.jsonl.gz'));
      case 'magagent':
        return lmcache(readLines(folder, 'lmcache_agent_magagent.jsonl.gz'));
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

function readLines(folder: string, file: string): unknown[] {
  const text = new TextDecoder().decode(gunzipSync(readFileSync(join(folder, file))));
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

const MOONCAKE_BLOCK = 512;

/** The first `count` requests whose prompt is not too long. */
function mooncake(lines: unknown[], count: number): TraceRequest[] {
  const requests: TraceRequest[] = [];
  for (let line = 0; line < lines.length && requests.length < count; line++) {
    const { input_length, output_length, hash_ids } = lines[line] as {
      input_length: number;
      output_length: number;
      hash_ids: number[];
    };
    if (input_length > MAX_PROMPT) continue;
    const outputLength = Math.max(1, output_length);
    requests.push(
      hashedRequest({ hashIds: hash_ids, blockTokens: MOONCAKE_BLOCK, promptLength: input_length, outputLength, line }),
    );
  }
  return requests;
}

const CLAUDE_BLOCK = 64;
const CLAUDE_SESSIONS = 16;
const CLAUDE_TURNS = 24;

interface ClaudeRequest {
  type: string;
  in: number;
  out: number;
  /** Runs: start, count, start, count, … */
  hash_ids: number[];
}

/** The first 24 top-level requests of 16 sessions, turn by turn. */
function claude(lines: unknown[]): TraceRequest[] {
  const sessions: { number: number; turns: ClaudeRequest[] }[] = [];
  for (const line of lines) {
    const { id, requests } = line as { id: string; requests: ClaudeRequest[] };
    const turns = requests.filter((turn) => turn.type !== 'subagent' && turn.in >= CLAUDE_BLOCK && turn.in <= MAX_PROMPT);
    if (turns.length < CLAUDE_TURNS) continue;
    sessions.push({ number: Number.parseInt(id.split('_')[1], 10), turns });
    if (sessions.length === CLAUDE_SESSIONS) break;
  }
  const requests: TraceRequest[] = [];
  for (let turn = 0; turn < CLAUDE_TURNS; turn++) {
    for (const session of sessions) {
      const { hash_ids, out } = session.turns[turn];
      const hashIds: number[] = [];
      for (let run = 0; run < hash_ids.length; run += 2) {
        for (let i = 0; i < hash_ids[run + 1]; i++) hashIds.push((session.number * 2 ** 20 + hash_ids[run] + i) | 0);
      }
      const promptLength = hashIds.length * CLAUDE_BLOCK;
      const outputLength = Math.max(1, out);
      requests.push(hashedRequest({ hashIds, blockTokens: CLAUDE_BLOCK, promptLength, outputLength, line: requests.length }));
    }
  }
  return requests;
}

/** Real token ids; a prompt is given by what it shares with an earlier one and what follows. */
function lmcache(lines: unknown[]): TraceRequest[] {
  const prompts: Uint32Array[] = [];
  const requests: TraceRequest[] = [];
  for (const line of lines) {
    const { prefix_of, prefix_length, input, output } = line as {
      prefix_of: number;
      prefix_length: number;
      input: number[];
      output: number[];
    };
    const shared = prefix_of < 0 ? 0 : prefix_length;
    const prompt = new Uint32Array(shared + input.length);
    if (shared > 0) prompt.set(prompts[prefix_of].subarray(0, shared));
    prompt.set(input, shared);
    prompts.push(prompt);
    if (prompt.length === 0) continue;
    requests.push({
      promptLength: prompt.length,
      outputLength: Math.max(1, output.length),
      prompt: () => prompt,
      outputToken: (index) => output[index] ?? 0,
    });
  }
  return requests;
}
