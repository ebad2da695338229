import { KernelError } from '../../errors/kernel-error.ts';
import type { ComputeStep } from '../../kernel/compute-step.ts';
import type { StorageDtype } from '../../kernel/storage-dtype.ts';
import { wordsOf } from './operands.ts';
import { type PackedRequests, packRequests } from './packed-requests.ts';
import type { StateShape } from './state-shape.ts';
import type { Words } from './tables.ts';

/** How long a replay ring is, and what a step may ask of it. */
export interface ReplayRing {
  /** Tokens that a page of the ring holds, at least `2 * maxTokens`. */
  rows: number;
  /** Tokens of one request in one step, at most: 1, or the drafts of speculation and the token before them. */
  maxTokens: number;
  /** How u and keys are stored, default f32. Decays are f32 with either. */
  dtype?: StorageDtype;
}

/** Where one request is in its ring. Plain data of the caller's, which changes by `afterReplay`. */
export interface ReplayCursor {
  /** Tokens that the sequence has kept so far. Says which row comes next: rows of the ring are taken in turn. */
  position: number;
  /** Tokens at the end of those whose rows the ring holds, and the checkpoint does not. 0 = the checkpoint is the state. */
  length: number;
}

/** The requests of a step that replays, as the kernels read them. Made by `packReplay`. */
export interface ReplayRequests {
  requests: PackedRequests;
  ring: ReplayRing;
  /** `[3, numRequests] u32`: position and length of each ring, and 1 where the checkpoint is to be brought up to it. */
  cursors: Words;
}

/**
 * Words of a page of the ring, `[rows, rowWords]` of rows `[u: numHeads * headDim | key: numGroups * stateSize | logDecay: numHeads]`.
 * @throws {KernelError} `kernel-layout` when the ring is too short, or rows of f16 end in half a word
 */
export function ringWords(label: string, shape: StateShape, ring: ReplayRing): number {
  requireRing(label, ring);
  const dtype = ring.dtype ?? 'f32';
  const values = shape.numHeads * wordsOf(label, 'headDim', shape.headDim, dtype);
  const keys = shape.numGroups * wordsOf(label, 'stateSize', shape.stateSize, dtype);
  return ring.rows * (values + keys + shape.numHeads);
}

/**
 * Whether a step over `numTokens` tokens writes the checkpoint: when the ring could not take the largest step behind it otherwise.
 * What it then writes is the state before the step, so the step's own tokens may still be taken back.
 */
export function settlesRing(ring: ReplayRing, { length }: ReplayCursor, numTokens: number): boolean {
  return length + numTokens + ring.maxTokens > ring.rows;
}

/**
 * The cursor after a step, of whose tokens the first `numAccepted` are kept: the others' rows are overwritten by the next step,
 * and there is no state to restore. The convolution's tail ring follows from the same `position`.
 *
 * @param settled what `settlesRing` said, or true where `packReplay` was told to settle
 */
export function afterReplay(cursor: ReplayCursor, settled: boolean, numAccepted: number): ReplayCursor {
  return { position: cursor.position + numAccepted, length: (settled ? 0 : cursor.length) + numAccepted };
}

/**
 * Lays the requests of a step out, as `packRequests` does, with their cursors.
 *
 * @param tokensPerRequest tokens of each request in this step, 0 to `maxTokens`
 * @param cursors          one for each request, before the step
 * @param settle           requests whose checkpoint is brought up to their ring whatever `settlesRing` says, before a scan goes
 *   on from it or somebody else takes it: with 0 tokens this is all that happens
 * @throws {KernelError} `kernel-dispatch` when tokens or cursors do not fit the ring
 */
export function packReplay(
  step: ComputeStep,
  ring: ReplayRing,
  tokensPerRequest: ArrayLike<number>,
  cursors: readonly ReplayCursor[],
  settle?: (request: number) => boolean,
): ReplayRequests {
  const requests = packRequests(step, tokensPerRequest);
  const { numRequests } = requests;
  if (cursors.length !== numRequests) {
    throw new KernelError('kernel-dispatch', 'replay', `${numRequests} requests have ${cursors.length} cursors.`);
  }
  const words = new Uint32Array(3 * numRequests);
  for (let r = 0; r < numRequests; r++) {
    const { position, length } = cursors[r];
    requireCursor(ring, r, tokensPerRequest[r], cursors[r]);
    words[r] = position;
    words[numRequests + r] = length;
    words[2 * numRequests + r] = settle?.(r) || settlesRing(ring, cursors[r], tokensPerRequest[r]) ? 1 : 0;
  }
  return { requests, ring, cursors: { buffer: step.upload(words) } };
}

function requireCursor(ring: ReplayRing, request: number, numTokens: number, { position, length }: ReplayCursor): void {
  const fits =
    numTokens <= ring.maxTokens &&
    isCount(length) &&
    isCount(position) &&
    length <= position &&
    position <= 0xffff_ffff - ring.rows &&
    length + numTokens <= ring.rows;
  if (fits) return;
  throw new KernelError(
    'kernel-dispatch',
    'replay',
    `request ${request} has ${numTokens} tokens at ${position}, ${length} of them in its ring. The ring takes ${ring.maxTokens} at a time and holds ${ring.rows}.`,
  );
}

function requireRing(label: string, { rows, maxTokens }: ReplayRing): void {
  if (isCount(rows) && isCount(maxTokens) && maxTokens > 0 && rows >= 2 * maxTokens) return;
  throw new KernelError(
    'kernel-layout',
    label,
    `a ring of ${rows} rows is too short for ${maxTokens} tokens a step. It needs ${2 * maxTokens}: those of a step, and of the one before it.`,
  );
}

function isCount(value: number): boolean {
  return Number.isInteger(value) && value >= 0;
}
