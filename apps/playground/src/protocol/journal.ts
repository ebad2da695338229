import type { GenerationReport, GroupReuse } from '@bufferwise/hybrid-engine';

/** Something that happened to the memory, or because of it, as it was counted. */
export type JournalEntry = { readonly at: number } & (
  | {
      readonly kind: 'began';
      readonly conversation: number;
      readonly promptTokens: number;
      readonly reusedTokens: number;
      readonly groups: readonly GroupReuse[];
    }
  | { readonly kind: 'answered'; readonly conversation: number; readonly report: GenerationReport }
  | { readonly kind: 'stopped'; readonly conversation: number }
  | { readonly kind: 'failed'; readonly conversation: number; readonly message: string }
  /** Pages of blocks became reusable. */
  | { readonly kind: 'stored'; readonly groupId: number; readonly numPages: number }
  /** Pages left the device to make room: so many for a colder tier, the rest for good. */
  | { readonly kind: 'evicted'; readonly groupId: number; readonly numPages: number; readonly kept: number }
  /** Pages came back to the device. */
  | { readonly kind: 'onboarded'; readonly groupId: number; readonly numPages: number }
  /** A colder tier had no room for pages. */
  | { readonly kind: 'dropped'; readonly groupId: number; readonly numPages: number }
  /** Conversations made way for others. */
  | { readonly kind: 'preempted'; readonly suspended: number; readonly released: number }
  | { readonly kind: 'resized'; readonly deviceBytes: number; readonly done: boolean }
  | { readonly kind: 'cleared' }
  | { readonly kind: 'opened'; readonly numGroups: number }
  /** Prefixes came from what is kept beyond a reload, or went there. */
  | { readonly kind: 'loaded'; readonly numTokens: number }
  | { readonly kind: 'saved'; readonly numTokens: number }
);

export type JournalKind = JournalEntry['kind'];
