import { computed, type Signal, signal } from '@preact/signals';
import type { EngineAbout, EngineSettings } from '../protocol/about.ts';
import type { JournalEntry } from '../protocol/journal.ts';
import type { MemoryFrame } from '../protocol/memory-frame.ts';
import type { AnswerOptions, ComparedSubject, ComparisonUpdate, StatisticsUpdate, TurnState } from '../protocol/messages.ts';
import type { TreeFrame } from '../protocol/tree-frame.ts';
import type { Sentence } from '../story/tell.ts';
import type { ColourMode } from './colour-mode.ts';

/** Where the page is. */
export type Phase =
  | { readonly name: 'starting'; readonly what: string; readonly share: number }
  | { readonly name: 'running' }
  | { readonly name: 'unsupported'; readonly why: string }
  | { readonly name: 'failed'; readonly message: string };

/** A run of text that one side said. */
export interface Passage {
  readonly by: 'person' | 'model';
  readonly text: string;
}

/** One conversation as it is shown. */
export interface ConversationView {
  readonly id: number;
  readonly passages: readonly Passage[];
  readonly state: TurnState | 'new';
  /** Tokens of everything said when the turn began, and those of them whose memory was found; null before the first turn. */
  readonly promptTokens: number | null;
  readonly reusedTokens: number | null;
  /** Characters from the first on whose memory was found. */
  readonly reusedChars: number;
  readonly answeredTokens: number;
  readonly timeToFirstTokenMs: number | null;
  readonly problem: string | null;
}

export type Comparison = { readonly state: 'none' } | ComparisonUpdate;

const MIB = 2 ** 20;

/** The most that pages may take, and the step of the slider. Bytes. */
export const MEMORY_RANGE = { most: 32 * MIB, step: 2 * MIB } as const;

/** Tokens that may be read in one step: as many as the model's windows have, and more. */
export const STEP_LENGTHS: readonly number[] = [128, 256, 512];

export const FIRST_SETTINGS: EngineSettings = {
  deviceBytes: 12 * MIB,
  hostBytes: 4 * MIB,
  maxDrafts: 3,
  chunkTokens: STEP_LENGTHS[0],
  scratch: false,
  policies: {},
};

/** Everything that the page shows, by what it is. */
export const phase: Signal<Phase> = signal<Phase>({ name: 'starting', what: 'Starting', share: 0 });
export const about: Signal<EngineAbout | null> = signal<EngineAbout | null>(null);
/** Whether another engine is being made. */
export const reopening = signal(false);
/** What the person should hear of, once. */
export const notice = signal('');

export const conversations: Signal<ReadonlyMap<number, Signal<ConversationView>>> = signal(new Map());
export const answerOptions: Signal<AnswerOptions> = signal<AnswerOptions>({ maxNewTokens: 32, temperature: 0.7 });
export const stepping = signal(false);

export const frame: Signal<MemoryFrame | null> = signal<MemoryFrame | null>(null);
export const tree: Signal<TreeFrame | null> = signal<TreeFrame | null>(null);
export const statistics: Signal<StatisticsUpdate | null> = signal<StatisticsUpdate | null>(null);
/** The latest of what happened, one list for each look at the engine, oldest first. */
export const journal: Signal<readonly (readonly JournalEntry[])[]> = signal<readonly (readonly JournalEntry[])[]>([]);
/** Each with a number of its own. */
export const sentences: Signal<readonly (Sentence & { readonly id: number })[]> = signal<
  readonly (Sentence & { readonly id: number })[]
>([]);
export const comparisons: Readonly<Record<ComparedSubject, Signal<Comparison>>> = {
  policies: signal<Comparison>({ state: 'none' }),
  scratch: signal<Comparison>({ state: 'none' }),
};
/** Whether two settings are being compared. */
export const comparing = computed(() => Object.values(comparisons).some(({ value }) => value.state === 'running'));
/** Policies that are chosen and not in use yet, by `layer.role`. */
export const chosenPolicies: Signal<EngineSettings['policies']> = signal<EngineSettings['policies']>({});

export const colourMode: Signal<ColourMode> = signal<ColourMode>('group');
/** Block that is looked at in the map and in the tree. */
export const selectedBlock: Signal<number | null> = signal<number | null>(null);

/** What is shown behind the picture. */
export const sideTab = signal('story');

/** Whether some answer is under way. */
export const anyRunning = computed(() => [...conversations.value.values()].some(({ value }) => isUnderWay(value.state)));

export const groups = computed(() => about.value?.groups ?? []);

export function isUnderWay(state: ConversationView['state']): boolean {
  return state === 'waiting' || state === 'reading' || state === 'answering';
}
