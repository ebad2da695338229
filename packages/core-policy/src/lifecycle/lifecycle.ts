import { type Branded, checkedIndex } from '../branded.ts';
import type { ReusePolicy } from '../reuse/reuse-policy.ts';

/** How long pages of an attention buffer matter, and to whom. */
export interface AttentionLifecycle {
  readonly kind: 'attention';
  /** Tokens a query sees, itself included, or null for attention without a window. */
  readonly windowSize: number | null;
  /** Blocks at the start of the sequence that never leave the window. */
  readonly numSinkBlocks: number;
  /** Label that keeps lifecycles apart, or null for none. */
  readonly sparsityGroup: string | null;
  readonly policy: ReusePolicy;
}

/** Recurrent state: one page a sequence, snapshots at exact token counts. */
export interface SsmLifecycle {
  readonly kind: 'ssm';
  readonly policy: ReusePolicy;
}

/** What a page is worth keeping for. Two buffers whose lifecycles mean the same share one id. */
export type Lifecycle = AttentionLifecycle | SsmLifecycle;

/** Index of a lifecycle in its registry: 0 … size - 1, in order of first appearance of a real buffer. */
export type LifecycleId = Branded<number, 'LifecycleId'>;

/** The same id, asked by layer. */
export type LayerGroupId = LifecycleId;

/** Brands a number as a lifecycle id; throws `bad-index` unless it is a whole number >= 0. */
export const lifecycleId = checkedIndex<LifecycleId>('LifecycleId');

/** What tells attention lifecycles apart besides the window. */
export interface AttentionLifecycleOptions {
  /** Default `required`. */
  policy?: ReusePolicy;
  /** Default null, no label. */
  sparsityGroup?: string | null;
}

/** What tells windowed lifecycles apart besides the window. */
export interface SlidingWindowOptions extends AttentionLifecycleOptions {
  /** Blocks at the start of the sequence that never leave the window. Default 0. */
  numSinkBlocks?: number;
}

/** The lifecycle of attention that sees the last `windowSize` tokens (> 0) and the first `numSinkBlocks` blocks (default 0). */
export function slidingWindow(windowSize: number, options: SlidingWindowOptions = {}): AttentionLifecycle {
  const { numSinkBlocks = 0, sparsityGroup = null, policy = 'required' } = options;
  return Object.freeze({ kind: 'attention', windowSize, numSinkBlocks, sparsityGroup, policy });
}

/** The lifecycle of attention that sees every token. */
export function fullAttention(options: AttentionLifecycleOptions = {}): AttentionLifecycle {
  const { sparsityGroup = null, policy = 'required' } = options;
  return Object.freeze({ kind: 'attention', windowSize: null, numSinkBlocks: 0, sparsityGroup, policy });
}

/** The lifecycle of recurrent state. */
export function ssmState(policy: ReusePolicy = 'required'): SsmLifecycle {
  return Object.freeze({ kind: 'ssm', policy });
}

/** Whether two lifecycles mean the same, field by field. */
export function sameLifecycle(a: Lifecycle, b: Lifecycle): boolean {
  if (a.policy !== b.policy) return false;
  if (a.kind === 'ssm' || b.kind === 'ssm') return a.kind === b.kind;
  return a.windowSize === b.windowSize && a.numSinkBlocks === b.numSinkBlocks && a.sparsityGroup === b.sparsityGroup;
}

/** A string that is equal for two lifecycles exactly when they mean the same: a key for maps, not for storage. */
export function lifecycleKey(lifecycle: Lifecycle): string {
  if (lifecycle.kind === 'ssm') return `ssm ${lifecycle.policy}`;
  const { windowSize, numSinkBlocks, sparsityGroup, policy } = lifecycle;
  // The label comes last, as it may hold any character.
  return `attention ${policy} ${windowSize ?? 'full'} ${numSinkBlocks}${sparsityGroup === null ? '' : ` ${sparsityGroup}`}`;
}
