import { readFile } from 'node:fs/promises';
import { readTrace, type Trace, type TraceFormat } from '@bufferwise-internal/request-traces';
import { CliError } from '../cli-error.ts';

/** Which requests of a trace. */
export interface TraceChoice {
  /** Default: told by the first line. */
  readonly format?: TraceFormat;
  /** Requests to leave out at the beginning. Default 0. */
  readonly skip?: number;
  /** Requests at most. Default: all. */
  readonly count?: number;
  /** Longest prompt that is taken, in tokens. */
  readonly maxPrompt: number;
  /** Of a trace of sessions: how many of them, and how many requests of each. Shorter ones are left out. Default: all. */
  readonly sessions?: number;
  readonly turns?: number;
}

/**
 * Reads requests of a trace.
 *
 * @returns at least one
 * @throws {CliError} when the file cannot be read, or nothing of it is left; {TraceError} when it is no trace
 */
export async function readTraceRequests(
  path: string,
  { format, skip = 0, count = Number.POSITIVE_INFINITY, maxPrompt, sessions, turns }: TraceChoice,
): Promise<Trace> {
  const trace = readTrace(await readFileOf(path), format, { sessions, turns, maxPrompt });
  const requests = trace.requests.filter(({ promptLength }) => promptLength <= maxPrompt).slice(skip, skip + count);
  if (requests.length > 0) return { format: trace.format, requests };
  throw new CliError(`${path} has no request left after ${skip} are skipped, of prompts up to ${maxPrompt} tokens`);
}

async function readFileOf(path: string): Promise<Uint8Array> {
  try {
    return await readFile(path);
  } catch (cause) {
    throw new CliError(`cannot read ${path}: ${(cause as NodeJS.ErrnoException).code ?? cause}`);
  }
}

/** Tokens of the longest prompt that is taken, unless something else is asked for. */
export const MAX_PROMPT = 131_072;

/** Requests that a flag names, at most. */
export const MANY = 2 ** 31;
