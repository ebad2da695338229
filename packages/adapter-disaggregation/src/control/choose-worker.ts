import type { JobRole } from './control-message.ts';
import type { PrefixReuse } from './prefix-index.ts';
import type { KnownWorker } from './worker-registry.ts';

/** What a worker is worth for one part of a job. */
export interface Candidate {
  readonly worker: KnownWorker;
  readonly reuse: PrefixReuse;
  /** Parts of jobs that this side has given it and that have not ended. */
  readonly given: number;
}

export interface RoutingWeights {
  /** What it costs that all slots of a worker are taken, as tokens that it would have to compute. Default 4096. */
  readonly fullTokens: number;
}

export const DEFAULT_ROUTING_WEIGHTS: RoutingWeights = { fullTokens: 4096 };

/**
 * Tokens that a worker saves, less what its load costs, as tokens. Who prefills saves what it need not compute, which is as much as all
 * required groups have; who decodes saves what need not be moved, which is each required group's own.
 *
 * The load is what the worker said last or what was given to it from here, whichever is more: between two heartbeats it knows less.
 */
export function scoreOf({ worker, reuse, given }: Candidate, role: JobRole, { fullTokens }: RoutingWeights): number {
  const { held, endpoint } = reuse;
  const saved = role === 'prefill' ? endpoint : held.reduce((sum, tokens) => sum + tokens, 0) / Math.max(1, held.length);
  const { active, waiting, freePages } = worker.load;
  const load = Math.max(active + waiting, given) / worker.slots + (freePages === 0 ? 1 : 0);
  return saved - fullTokens * load;
}

/** The worker with the best score; among equals one that depends on the request, so that requests spread. Undefined without candidates. */
export function chooseWorker(
  candidates: readonly Candidate[],
  role: JobRole,
  request: string,
  weights: RoutingWeights,
): Candidate | undefined {
  let best: { candidate: Candidate; score: number; tie: number } | undefined;
  for (const candidate of candidates) {
    const score = scoreOf(candidate, role, weights);
    const tie = mixed(`${request} ${candidate.worker.id}`);
    if (best === undefined || score > best.score || (score === best.score && tie > best.tie)) best = { candidate, score, tie };
  }
  return best?.candidate;
}

/** 32 bits that depend on every character (FNV-1a). */
function mixed(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
