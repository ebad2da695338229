import { AdapterError, type ConsumerStep, type StepRequest } from '@bufferwise/adapter-kit';
import type { ReplayCursor, ReplayRing } from '@bufferwise/gpu-kernels';
import type { BoundLayer } from './bound-layer.ts';
import type { ReplayCursors } from './replay-cursors.ts';
import type { SidePages } from './side-pages.ts';

/** What a step does with the rings of one size. */
export interface RingPlan {
  readonly cursors: ReplayCursors;
  /** For each request where it is in its ring, when its tokens go through it; undefined when they are written back. */
  readonly replayed: readonly (ReplayCursor | undefined)[];
  /** Requests whose state is brought up to their ring before anything else. */
  readonly settled: readonly { readonly request: number; readonly cursor: ReplayCursor }[];
}

/** How a request computes what its reused pages do not hold any more. */
export interface AsidePlan {
  readonly sequence: object;
  /** Whether its side pages hold what was before this step; else it begins from zeros. */
  readonly reads: boolean;
  /** Whether another step before the match follows. */
  readonly writes: boolean;
}

/**
 * Decides for each request of a step whether its tokens go through the ring or the state, before anything is recorded.
 *
 * @throws {AdapterError} `step-refused` when a request begins where no ring can take it
 */
export function planRing(name: string, cursors: ReplayCursors, { requests }: ConsumerStep): RingPlan {
  const replayed: (ReplayCursor | undefined)[] = [];
  const settled: { request: number; cursor: ReplayCursor }[] = [];
  for (const [row, request] of requests.entries()) {
    const cursor = cursorOf(name, cursors, request, row);
    const byRing = cursor !== undefined && goesByRing(cursors.ring, request);
    replayed.push(byRing ? cursor : undefined);
    if (!byRing && cursor !== undefined && cursor.length > 0) settled.push({ request: row, cursor });
  }
  return { cursors, replayed, settled };
}

/** What is to be settled for the state pages of all requests to be the states after their first `start` tokens. */
export function planSettling(name: string, cursors: ReplayCursors, { requests }: ConsumerStep): RingPlan['settled'] {
  return requests.flatMap((request, row) => {
    const cursor = cursorOf(name, cursors, request, row);
    return cursor !== undefined && cursor.length > 0 ? [{ request: row, cursor }] : [];
  });
}

/** Takes note of what a step does, once all of it is sure to be recorded. */
export function noteRing({ cursors, replayed }: RingPlan, { requests }: ConsumerStep): void {
  for (const [row, { sequence, start, numTokens }] of requests.entries()) {
    if (sequence === undefined) continue;
    const cursor = replayed[row];
    if (cursor) cursors.replayed(sequence, cursor, numTokens);
    else cursors.wrote(sequence, start + numTokens);
  }
}

/**
 * Which requests compute beside their pages, in a step that gives matched tokens again.
 *
 * @throws {AdapterError} `step-refused` when what a later step needs could not be kept for it
 */
export function planAsides(
  name: string,
  layers: readonly BoundLayer[],
  sidePages: SidePages,
  { requests }: ConsumerStep,
): readonly (AsidePlan | undefined)[] {
  const seen = new Set<object>();
  return requests.map(({ start, numTokens, matched, reusedGroups, sequence }, row) => {
    const reuses = layers.some(
      (layer) => reusedGroups.has(layer.groupOf('ssm_state')) || reusedGroups.has(layer.groupOf('conv_state')),
    );
    if (start >= matched || !reuses) return undefined;
    const writes = start + numTokens < matched;
    const reads = sequence !== undefined && start > 0 && sidePages.has(sequence, start);
    if (!reads && !(start === 0 && writes)) return undefined;
    if (sequence === undefined || seen.has(sequence)) {
      const why =
        sequence === undefined
          ? 'what the next step needs is kept by `sequence`, which is missing'
          : 'it is one of several beams, which are to be forked behind the match';
      throw refused(name, row, `gives tokens from 0 to ${start + numTokens} again, of ${matched} that were matched: ${why}`);
    }
    seen.add(sequence);
    return { sequence, reads, writes };
  });
}

/** Beams of a request are in its ring at the same place, so they take the same steps. */
export function checkBeams(name: string, { requests }: ConsumerStep): void {
  const first = new Map<object, StepRequest>();
  for (const [row, request] of requests.entries()) {
    const { sequence, start, numTokens, snapshot } = request;
    if (sequence === undefined) continue;
    const other = first.get(sequence) ?? request;
    first.set(sequence, other);
    if (other.start !== start || other.numTokens !== numTokens || other.snapshot !== snapshot)
      throw refused(name, row, 'has the `sequence` of another row, a beam then, but other tokens; beams take the same steps');
  }
}

function cursorOf(
  name: string,
  cursors: ReplayCursors,
  { sequence, start, matched }: StepRequest,
  row: number,
): ReplayCursor | undefined {
  if (sequence === undefined) return undefined;
  const cursor = cursors.at(sequence, start, matched);
  if (cursor) return cursor;
  const { maxTokens } = cursors.ring;
  throw refused(
    name,
    row,
    `begins at token ${start}, where its last step did not leave it; only the tokens of the last step can be taken back, of at most ${maxTokens} and with \`snapshot: false\``,
  );
}

/** Whether a step of a request writes no state. One from token 0 on has none to begin from, and matched tokens are for pages. */
function goesByRing({ maxTokens }: ReplayRing, { start, numTokens, matched, snapshot }: StepRequest): boolean {
  return snapshot === false && numTokens <= maxTokens && start > 0 && start >= matched;
}

function refused(name: string, row: number, why: string): AdapterError {
  return new AdapterError('step-refused', `${name} cannot do this step: request ${row} ${why}`);
}
