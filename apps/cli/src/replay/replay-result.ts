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
  /** Bytes of its pages in all tiers when the last request had ended. */
  readonly keptBytes: number;
  readonly evictedPages: number;
  readonly missedSnapshots: number;
  readonly offloadedBytes: number;
  readonly onboardedBytes: number;
  readonly droppedBytes: number;
}

/** Calls of the store of a disk tier, and the bytes they carried. */
export interface DiskTraffic {
  readonly writes: number;
  readonly writtenBytes: number;
  readonly reads: number;
  readonly readBytes: number;
}

/** What a trace came to on one setting. */
export interface ReplayResult {
  readonly label: string;
  /** Requests that were admitted, that never fit, and whose answer was cut for want of memory. */
  readonly requests: number;
  readonly skipped: number;
  readonly truncated: number;
  readonly preemptions: number;
  /** Requests that ran a part of their match a second time, for groups that lacked it. */
  readonly rebuilds: number;
  readonly moves: number;
  readonly steps: number;
  readonly promptTokens: number;
  readonly hitTokens: number;
  readonly hitRate: number;
  /** Tokens of prompts that went through the model, however often. */
  readonly computedTokens: number;
  /** Of these, such as had matched or were computed before: second runs, and requests that made way. */
  readonly recomputedTokens: number;
  /** `1 - computedTokens / promptTokens`: the part of all prompts that reuse spared the model. */
  readonly savedRate: number;
  readonly outputTokens: number;
  /** Tokens of the blocks that were there when the last request had ended, and bytes of their pages in all tiers. */
  readonly keptTokens: number;
  readonly keptBytes: number;
  /** What went to the disk tier and came from it; null without one. */
  readonly disk: DiskTraffic | null;
  /** Calls of the manager, the milliseconds they took, and how many that makes a second. */
  readonly operations: number;
  readonly managerMs: number;
  readonly operationsPerSecond: number;
  readonly groups: readonly ReplayGroup[];
  readonly samples: readonly ReplaySample[];
}
