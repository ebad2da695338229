import type { ReusePolicy } from '@bufferwise/core-policy';

/** What happened between two looks at the manager. */
export interface ReplaySample {
  /** Requests that were admitted so far. */
  readonly requests: number;
  /** Of the prompts since the last sample: tokens, and those that matched. */
  readonly promptTokens: number;
  readonly hitTokens: number;
  /** Index = group id. Of pages, since the last sample; null when none was looked for. */
  readonly hitRates: readonly (number | null)[];
  /** Index = group id. Since the last sample. */
  readonly evictedPages: readonly number[];
}

/** One group over the whole replay. */
export interface ReplayGroup {
  readonly groupId: number;
  readonly policy: ReusePolicy;
  readonly kind: string;
  readonly reusedPages: number;
  readonly missedPages: number;
  /** `reusedPages / (reusedPages + missedPages)`, 0 when there was neither. */
  readonly hitRate: number;
  readonly evictedPages: number;
  readonly missedSnapshots: number;
  readonly offloadedBytes: number;
  readonly onboardedBytes: number;
  readonly droppedBytes: number;
}

/** What a trace came to on one setting. */
export interface ReplayResult {
  readonly label: string;
  /** Requests that were admitted, that never fit, and whose answer was cut for want of memory. */
  readonly requests: number;
  readonly skipped: number;
  readonly truncated: number;
  readonly preemptions: number;
  /** Requests whose match had optional groups that had to be rebuilt. */
  readonly rebuilds: number;
  readonly moves: number;
  readonly steps: number;
  readonly promptTokens: number;
  readonly hitTokens: number;
  readonly hitRate: number;
  readonly outputTokens: number;
  /** Calls of the manager, the milliseconds they took, and how many that makes a second. */
  readonly operations: number;
  readonly managerMs: number;
  readonly operationsPerSecond: number;
  readonly groups: readonly ReplayGroup[];
  readonly samples: readonly ReplaySample[];
}
