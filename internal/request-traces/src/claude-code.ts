import type { TraceLine } from './read-lines.ts';
import { hashedRequest, type TraceRequest } from './trace-request.ts';

const BLOCK_TOKENS = 64;
/** Hash ids are local to a session: each has so many of its own. */
const IDS_PER_SESSION = 2 ** 20;

/** Which requests of which sessions. */
export interface SessionChoice {
  /** Sessions at most; default all. */
  sessions?: number;
  /** Requests of each session; sessions with fewer are left out. Default: all requests of every session. */
  turns?: number;
  /** Longest prompt that is taken, in tokens. Default: any. */
  maxPrompt?: number;
}

interface Session {
  number: number;
  turns: readonly TraceLine[];
}

/** The top-level requests of sessions, turn by turn: the first of every session, then the second of every session. */
export function claudeCodeRequests(lines: readonly TraceLine[], choice: SessionChoice = {}): TraceRequest[] {
  const { sessions: maxSessions = Number.POSITIVE_INFINITY, turns: maxTurns, maxPrompt = Number.POSITIVE_INFINITY } = choice;
  const sessions: Session[] = [];
  for (const line of lines) {
    if (sessions.length === maxSessions) break;
    const turns = line
      .list('requests')
      .filter((turn) => turn.text('type') !== 'subagent' && isBetween(turn.count('in'), maxPrompt));
    if (turns.length < (maxTurns ?? 1)) continue;
    sessions.push({ number: numberOf(line, sessions.length), turns: turns.slice(0, maxTurns) });
  }
  const requests: TraceRequest[] = [];
  const longest = sessions.reduce((most, { turns }) => Math.max(most, turns.length), 0);
  for (let turn = 0; turn < longest; turn++) {
    for (const session of sessions) {
      if (turn < session.turns.length) requests.push(requestOf(session, session.turns[turn], requests.length));
    }
  }
  return requests;
}

function isBetween(promptLength: number, maxPrompt: number): boolean {
  return promptLength >= BLOCK_TOKENS && promptLength <= maxPrompt;
}

/** Sessions are called `trace_0010`. */
function numberOf(line: TraceLine, fallback: number): number {
  const number = line.has('id') ? Number.parseInt(line.text('id').split('_')[1] ?? '', 10) : Number.NaN;
  return Number.isNaN(number) ? fallback : number;
}

/** Whole blocks only: what is left of a prompt behind them has no id. */
function requestOf({ number }: Session, turn: TraceLine, line: number): TraceRequest {
  const runs = turn.ids('hash_ids');
  const hashIds: number[] = [];
  for (let run = 0; run + 1 < runs.length; run += 2) {
    for (let i = 0; i < runs[run + 1]; i++) hashIds.push((number * IDS_PER_SESSION + runs[run] + i) | 0);
  }
  if (hashIds.length === 0) throw turn.fault('hash_ids', 'must be pairs of a first id and a count');
  const promptLength = hashIds.length * BLOCK_TOKENS;
  return hashedRequest({
    hashIds,
    blockTokens: BLOCK_TOKENS,
    promptLength,
    outputLength: Math.max(1, turn.count('out', 1)),
    line,
  });
}
