import type { Branded } from '../branded.ts';
import type { ReusePolicy } from '../reuse/reuse-policy.ts';

/** How long pages of an attention buffer matter, and to whom. */
export interface AttentionLifecycle {
  kind: 'attention';
  /** Tokens, or null for attention without a window. */
  windowSize: number | null;
  /** Blocks at the start of the sequence that never leave the window. */
  numSinkBlocks: number;
  sparsityGroup: string | null;
  policy: ReusePolicy;
}

/** Recurrent state: one page a sequence, snapshots at exact token counts. */
export interface SsmLifecycle {
  kind: 'ssm';
  policy: ReusePolicy;
}

/** What a page is worth keeping for. Two buffers whose lifecycles mean the same share one id. */
export type Lifecycle = AttentionLifecycle | SsmLifecycle;

/** Index of a lifecycle in its registry: 0 … size - 1, in order of first appearance of a real buffer. */
export type LifecycleId = Branded<number, 'LifecycleId'>;

/** The same id, asked by layer. */
export type LayerGroupId = LifecycleId;
