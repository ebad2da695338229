import type { PageCounts } from '@bufferwise/cache-manager';
import type { GenerationReport } from '@bufferwise/hybrid-engine';
import type { EngineAbout, EngineSettings } from './about.ts';
import type { JournalEntry } from './journal.ts';
import type { MemoryFrame } from './memory-frame.ts';
import type { TreeFrame } from './tree-frame.ts';

/** How an answer is to be. */
export interface AnswerOptions {
  readonly maxNewTokens: number;
  /** 0 takes the most likely token each time. */
  readonly temperature: number;
}

/** What the page asks of the worker. */
export type Order =
  /** The address of the page, which the model's files lie below. */
  | { readonly type: 'open'; readonly base: string; readonly settings: EngineSettings }
  /** Another engine, with other settings; conversations stay, what was remembered of them does not. */
  | { readonly type: 'reopen'; readonly settings: EngineSettings }
  /** Pieces are encoded one by one, and a state is kept between them: whoever begins with the same pieces can begin there. */
  | ({ readonly type: 'ask'; readonly conversation: number; readonly pieces: readonly string[] } & AnswerOptions)
  /** A conversation that begins with all that another one has said. */
  | { readonly type: 'branch'; readonly from: number; readonly to: number }
  | { readonly type: 'stop'; readonly conversation: number }
  | { readonly type: 'discard'; readonly conversation: number }
  /** One token at a time, or as fast as it goes. */
  | { readonly type: 'pace'; readonly stepping: boolean }
  | { readonly type: 'step' }
  | { readonly type: 'resize'; readonly deviceBytes: number }
  /** Forget what nobody uses, on the device and below. */
  | { readonly type: 'forget' }
  /** Forget what is kept beyond a reload. */
  | { readonly type: 'forget-kept' }
  /** Run the same two requests under two settings. */
  | {
      readonly type: 'compare';
      readonly subject: ComparedSubject;
      readonly before: EngineSettings;
      readonly after: EngineSettings;
    };

/** What two settings that are compared differ in. */
export type ComparedSubject = 'policies' | 'scratch';

/** Where a conversation is. */
export type TurnState = 'waiting' | 'reading' | 'answering' | 'done' | 'stopped' | 'failed';

export interface TurnUpdate {
  readonly conversation: number;
  readonly state: TurnState;
  /** Tokens of everything said so far. */
  readonly promptTokens?: number;
  /** Characters of everything said so far whose memory was found, and tokens. */
  readonly reusedChars?: number;
  readonly reusedTokens?: number;
  readonly report?: GenerationReport;
  readonly message?: string;
}

/** Counts of one group since the engine was made. */
export interface GroupCounts {
  readonly groupId: number;
  readonly pages: number;
  readonly evictedPages: number;
  readonly missedSnapshots: number;
  readonly counts: PageCounts;
}

export interface StatisticsUpdate {
  readonly groups: readonly GroupCounts[];
  readonly promptTokens: number;
  readonly hitTokens: number;
  readonly numSteps: number;
  /** Tokens kept beyond a reload in this visit, and loaded from there; null where nothing is kept. */
  readonly kept: { readonly savedTokens: number; readonly loadedTokens: number } | null;
}

/** What two requests on one beginning came to under some settings. */
export interface ComparisonSide {
  /** Bytes on the device that others can reuse, after the first request. */
  readonly leftBytes: number;
  /** The most bytes that both had in use on the device, pool by pool. */
  readonly mostBytes: number;
  /** The same of the pools of sliding windows, in pages and in bytes. */
  readonly mostOfWindows: { readonly pages: number; readonly bytes: number };
  readonly first: GenerationReport;
  readonly second: GenerationReport;
}

/** What the worker tells the page. */
export type Report =
  | { readonly type: 'progress'; readonly what: string; readonly share: number }
  | { readonly type: 'unsupported'; readonly why: string }
  | { readonly type: 'failed'; readonly message: string }
  /** Something that was asked for did not happen, and why. */
  | { readonly type: 'notice'; readonly message: string }
  | { readonly type: 'ready'; readonly about: EngineAbout }
  | { readonly type: 'frame'; readonly frame: MemoryFrame }
  | { readonly type: 'tree'; readonly tree: TreeFrame }
  | { readonly type: 'journal'; readonly entries: readonly JournalEntry[] }
  | { readonly type: 'statistics'; readonly statistics: StatisticsUpdate }
  | { readonly type: 'said'; readonly conversation: number; readonly text: string; readonly numTokens: number }
  | ({ readonly type: 'turn' } & TurnUpdate)
  | ({ readonly type: 'comparison'; readonly subject: ComparedSubject } & ComparisonUpdate);

/** How far a comparison is. */
export type ComparisonUpdate =
  | { readonly state: 'running'; readonly share: number }
  | { readonly state: 'failed'; readonly message: string }
  | { readonly state: 'done'; readonly before: ComparisonSide; readonly after: ComparisonSide; readonly sameText: boolean };
