import { MAX_REQUEST_BYTES } from '@bufferwise/adapter-kit';
import { ControlError } from './control-error.ts';

/** What a worker does: reads prompts, writes on, or both. */
export type WorkerRole = 'prefill' | 'decode' | 'both';
/** Which part of a job a worker is asked for. */
export type JobRole = 'prefill' | 'decode';

/** Who a worker is. Stays the same for one run of it. */
export interface WorkerDescription {
  /** 1 to 64 letters, digits, `_` or `-`. One worker at a time has it. */
  readonly id: string;
  readonly role: WorkerRole;
  /** Where its page transport listens; empty when it does not. Up to 512 characters. */
  readonly address: string;
  /** What tells models apart: the same for two workers whose pages mean the same. Up to 128 characters. */
  readonly fingerprint: string;
  /** `layoutHash` of its pages. */
  readonly layoutHash: string;
  /** Jobs that it does at a time, > 0. */
  readonly slots: number;
}

/** How busy a worker is. */
export interface WorkerLoad {
  /** Pages of the scarcest pool that are free or may be evicted. */
  readonly freePages: number;
  /** Requests that run, of whatever origin. */
  readonly active: number;
  /** Requests that wait for room. */
  readonly waiting: number;
}

/** Which try of which request, and which part of it. */
export interface JobId {
  readonly request: string;
  /** 0, 1, 2, …: what belongs to an earlier one is of no use to anybody. */
  readonly generation: number;
  readonly role: JobRole;
}

/** What is asked of a worker. */
export interface Job extends JobId {
  /** Where the pages go, for the one that prefills; null for the one that decodes. */
  readonly decode: { readonly worker: string; readonly address: string } | null;
  /** Whether the request moves: who decodes gets its pages from another worker, and else reads the prompt by itself. */
  readonly moves: boolean;
  /** Of no meaning here. */
  readonly body: string;
}

/** `['+' or '-', group of the layout, hashes]`: pages that can be reused from now on, or no more. */
export type BlockChange = readonly ['+' | '-', number, readonly string[]];

/** Why a worker does not take a job; another may. */
export type DeclineReason = 'busy' | 'draining' | 'stale' | 'role';

/** Everything that is said on the control plane. Every message may come twice, late or never. */
export type ControlMessage =
  // A worker, to whoever routes.
  | {
      readonly kind: 'status';
      readonly worker: WorkerDescription;
      readonly load: WorkerLoad;
      /** Takes no new jobs. */
      readonly draining: boolean;
      /** Number of the next `blocks`. */
      readonly nextBlocks: number;
    }
  | { readonly kind: 'leave' }
  /** Numbered from 0 in each run of a worker. With `fresh`, everything before is forgotten first. */
  | { readonly kind: 'blocks'; readonly number: number; readonly fresh: boolean; readonly changes: readonly BlockChange[] }
  // Whoever routes, to workers.
  | { readonly kind: 'who' }
  | { readonly kind: 'resync' }
  | ({ readonly kind: 'job' } & Job)
  /** Up to a generation; without a role, all parts. */
  | { readonly kind: 'cancel'; readonly request: string; readonly generation: number; readonly role: JobRole | null }
  /** A job is still wanted; with `ended`, its result was heard. */
  | ({ readonly kind: 'heard'; readonly ended: boolean } & JobId)
  // A worker, to whoever asked.
  | ({ readonly kind: 'taken' } & JobId)
  | ({ readonly kind: 'declined'; readonly reason: DeclineReason } & JobId)
  | ({ readonly kind: 'progress' } & JobId)
  | ({ readonly kind: 'done'; readonly result: string } & JobId)
  /** `permanent`: nobody else should try either. */
  | ({ readonly kind: 'failed'; readonly reason: string; readonly permanent: boolean } & JobId);

/** Bytes that a message may have, what is around it included; the most that a server of NATS takes unless told otherwise. */
export const MOST_MESSAGE_BYTES = 1 << 20;
/** Hashes that one `blocks` carries at most. */
export const MOST_HASHES = 4096;
/** Groups that a layout may have here. */
export const MOST_GROUPS = 30;
/** Characters of a reason; longer ones are cut. */
export const MOST_REASON = 1000;

const utf8 = new TextEncoder();
const text = new TextDecoder('utf-8', { fatal: true });

export function isId(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z0-9_-]{1,64}$/.test(value);
}

export function isRequest(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    value !== '' &&
    value.length <= MAX_REQUEST_BYTES &&
    utf8.encode(value).length <= MAX_REQUEST_BYTES
  );
}

/** Bytes around a body: names, addresses, a seal. */
const AROUND_BYTES = 8192;

/**
 * @param serverBytes what the server takes at a time
 * @throws {ControlError} `invalid-job` when it is longer than may be sent
 */
export function checkBody(what: string, body: string, serverBytes: number): void {
  const bytes = encodeJson(body).length;
  const most = Math.min(MOST_MESSAGE_BYTES, serverBytes) - AROUND_BYTES;
  if (bytes <= most) return;
  throw new ControlError(
    'invalid-job',
    `${what} takes ${bytes} bytes and ${most} is the most here; move what is large over a page transport`,
  );
}

/** Bytes of any value that is JSON. */
export function encodeJson(value: unknown): Uint8Array {
  return utf8.encode(JSON.stringify(value));
}

/** @throws {ControlError} `invalid-control-message` */
export function decodeJson(bytes: Uint8Array): Record<string, unknown> {
  if (bytes.length > MOST_MESSAGE_BYTES)
    throw invalidMessage(`it has ${bytes.length} bytes and ${MOST_MESSAGE_BYTES} is the most`);
  let value: unknown;
  try {
    value = JSON.parse(text.decode(bytes));
  } catch (cause) {
    throw invalidMessage('it is no JSON', cause);
  }
  if (!isRecord(value)) throw invalidMessage('it is no object');
  return value;
}

/**
 * Makes sure that a value is a message of some kind, with nothing in it that is too long or of another form.
 *
 * @throws {ControlError} `invalid-control-message`
 */
export function checkMessage(value: unknown): ControlMessage {
  if (!isRecord(value)) throw invalidMessage('it is no object');
  const { kind } = value;
  if (typeof kind !== 'string' || !Object.hasOwn(CHECKS, kind)) throw invalidMessage('its kind is unknown');
  if (!CHECKS[kind as ControlMessage['kind']](value)) throw invalidMessage(`a part of "${kind}" is missing or of another form`);
  return value as unknown as ControlMessage;
}

export function invalidMessage(why: string, cause?: unknown): ControlError {
  return new ControlError('invalid-control-message', `what came is no message of the control plane: ${why}; it is dropped`, {
    cause,
  });
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isGeneration = (value: unknown) => isCount(value) && value < 2 ** 32;
const isText = (most: number) => (value: unknown) => typeof value === 'string' && value.length <= most;
const isJobRole = (value: unknown) => value === 'prefill' || value === 'decode';
const isJobId = ({ request, generation, role }: Record<string, unknown>) =>
  isRequest(request) && isGeneration(generation) && isJobRole(role);
const isAddress = isText(512);
const isReason = isText(MOST_REASON);
const isBody = isText(MOST_MESSAGE_BYTES);
const isHash = (value: unknown) => typeof value === 'string' && /^[0-9a-f]{16}$/.test(value);

function isWorker(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { id, role, address, fingerprint, layoutHash, slots } = value;
  return (
    isId(id) &&
    (role === 'prefill' || role === 'decode' || role === 'both') &&
    isAddress(address) &&
    isText(128)(fingerprint) &&
    isText(128)(layoutHash) &&
    isCount(slots) &&
    slots > 0
  );
}

function isLoad(value: unknown): boolean {
  return isRecord(value) && isCount(value.freePages) && isCount(value.active) && isCount(value.waiting);
}

function areChanges(value: unknown): boolean {
  if (!Array.isArray(value) || value.length > MOST_HASHES) return false;
  let numHashes = 0;
  return value.every((change) => {
    if (!Array.isArray(change) || change.length !== 3) return false;
    const [sign, group, hashes] = change;
    if ((sign !== '+' && sign !== '-') || !isCount(group) || group >= MOST_GROUPS || !Array.isArray(hashes)) return false;
    numHashes += hashes.length;
    return numHashes <= MOST_HASHES && hashes.every(isHash);
  });
}

const isTarget = (value: unknown) => value === null || (isRecord(value) && isId(value.worker) && isAddress(value.address));
const nothing = () => true;

const CHECKS: Record<ControlMessage['kind'], (message: Record<string, unknown>) => boolean> = {
  status: ({ worker, load, draining, nextBlocks }) =>
    isWorker(worker) && isLoad(load) && typeof draining === 'boolean' && isCount(nextBlocks),
  leave: nothing,
  blocks: ({ number, fresh, changes }) => isCount(number) && typeof fresh === 'boolean' && areChanges(changes),
  who: nothing,
  resync: nothing,
  job: (message) => isJobId(message) && isTarget(message.decode) && typeof message.moves === 'boolean' && isBody(message.body),
  cancel: ({ request, generation, role }) => isRequest(request) && isGeneration(generation) && (role === null || isJobRole(role)),
  heard: (message) => isJobId(message) && typeof message.ended === 'boolean',
  taken: isJobId,
  declined: (message) => isJobId(message) && ['busy', 'draining', 'stale', 'role'].includes(message.reason as string),
  progress: isJobId,
  done: (message) => isJobId(message) && isBody(message.result),
  failed: (message) => isJobId(message) && isReason(message.reason) && typeof message.permanent === 'boolean',
};
