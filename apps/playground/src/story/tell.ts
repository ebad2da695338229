import type { GroupAbout } from '../protocol/about.ts';
import type { JournalEntry, JournalKind } from '../protocol/journal.ts';
import { bytesText, conversationName, counted, listed } from './names.ts';

/** Something that happened, in plain words. */
export interface Sentence {
  readonly at: number;
  readonly kind: JournalKind;
  readonly text: string;
  /** Why it is so, for whoever sees it for the first time. */
  readonly because?: string;
  /** Conversation that it is about. */
  readonly conversation?: number;
}

/** Tells what happened in one look at the engine. Entries of one kind become one sentence. */
export function tell(entries: readonly JournalEntry[], groups: readonly GroupAbout[]): Sentence[] {
  const sentences: Sentence[] = [];
  const done = new Set<JournalKind>();
  for (const entry of entries) {
    if (isAboutPages(entry)) {
      if (done.has(entry.kind)) continue;
      done.add(entry.kind);
      const alike = entries.filter(({ kind }) => kind === entry.kind);
      sentences.push({ at: entry.at, kind: entry.kind, ...tellTogether(alike as PageEntry[], groups) });
    } else {
      sentences.push({ at: entry.at, kind: entry.kind, ...tellAlone(entry, groups) });
    }
  }
  return sentences;
}

function isAboutPages(entry: JournalEntry): entry is PageEntry {
  return TOGETHER.has(entry.kind);
}

type Told = Pick<Sentence, 'text' | 'because' | 'conversation'>;
type PageEntry = Extract<JournalEntry, { numPages: number }>;

const TOGETHER: ReadonlySet<JournalKind> = new Set(['stored', 'evicted', 'onboarded', 'dropped']);

function tellTogether(entries: readonly PageEntry[], groups: readonly GroupAbout[]): Told {
  const pages = pagesByGroup(entries, groups);
  switch (entries[0].kind) {
    case 'stored':
      return {
        text: `${pages} can be shared from now on.`,
        because: 'A block that is full is published: whoever begins with the same words finds it in the tree.',
      };
    case 'evicted': {
      const kept = entries.reduce((sum, entry) => sum + (entry.kind === 'evicted' ? entry.kept : 0), 0);
      const all = entries.reduce((sum, { numPages }) => sum + numPages, 0);
      const where = kept === 0 ? 'and are forgotten' : kept === all ? 'for host memory' : `(${kept} of them for host memory)`;
      return {
        text: `${pages} left the device ${where}.`,
        because: 'Room was needed. First to go are pages that nobody holds, the least useful before the others.',
      };
    }
    case 'onboarded':
      return {
        text: `${pages} came back to the device.`,
        because: 'A request found them in host memory: a copy costs less than to compute them again.',
      };
    case 'dropped':
      return {
        text: `${pages} are forgotten: host memory has no room for them.`,
        because: 'The next who needs them computes them anew.',
      };
  }
}

function tellAlone(entry: Exclude<JournalEntry, PageEntry>, groups: readonly GroupAbout[]): Told {
  switch (entry.kind) {
    case 'began':
      return { conversation: entry.conversation, ...tellBeginning(entry, groups) };
    case 'answered':
      return { conversation: entry.conversation, ...tellAnswer(entry) };
    case 'stopped':
      return {
        conversation: entry.conversation,
        text: `${conversationName(entry.conversation)} was stopped.`,
        because: 'What it had published stays, and can be found again.',
      };
    case 'failed':
      return {
        conversation: entry.conversation,
        text: `${conversationName(entry.conversation)} could not go on: ${entry.message}`,
      };
    case 'preempted':
      return {
        text: `${counted(entry.suspended + entry.released, 'conversation')} made way for others.`,
        because:
          entry.suspended > 0
            ? 'Its pages wait in host memory until there is room again.'
            : 'It gave its pages up, and computes again what nobody has kept.',
      };
    case 'resized':
      return entry.done
        ? { text: `The device has ${bytesText(entry.deviceBytes)} for pages now.` }
        : {
            text: `The memory could not be made ${bytesText(entry.deviceBytes)}.`,
            because:
              'Conversations under way hold more pages than would be left: stop them, or let them end. Or every pool is as small as it can be.',
          };
    case 'cleared':
      return { text: 'Everything that could be shared was forgotten.' };
    case 'opened':
      return {
        text: `An engine with ${counted(entry.numGroups, 'buffer group')} is ready, and remembers nothing yet.`,
        because: 'Buffers that are needed for the same time by the same people form a group, with pages of its own.',
      };
    case 'loaded':
      return {
        text: `${counted(entry.numTokens, 'token')} of memory came from an earlier visit.`,
        because: 'This browser kept the pages in its own file system, and checked them before use.',
      };
    case 'saved':
      return { text: `${counted(entry.numTokens, 'token')} of memory are kept for the next visit.` };
  }
}

function tellBeginning(
  { conversation, promptTokens, reusedTokens, groups: reuse }: Extract<JournalEntry, { kind: 'began' }>,
  groups: readonly GroupAbout[],
): Pick<Told, 'text' | 'because'> {
  const name = conversationName(conversation);
  const rest = promptTokens - reusedTokens;
  if (reusedTokens === 0) {
    return {
      text: `${name} begins with nothing: its ${counted(promptTokens, 'token')} ${promptTokens === 1 ? 'goes' : 'go'} through the model.`,
      because: 'Nobody has said these words before, or what they left is gone.',
    };
  }
  const given = reuse
    .filter((group) => group.reusedTokens > 0)
    .map(({ groupId, reusedTokens: tokens }) => `${groups[groupId]?.name.toLowerCase() ?? `group ${groupId}`} (${tokens})`);
  const without = reuse.filter(({ reusedTokens: tokens }) => tokens === 0).map(({ groupId }) => groups[groupId]);
  const privately = without.filter((group) => group?.policy === 'private').map((group) => group.name.toLowerCase());
  return {
    text: `${name} finds ${reusedTokens} of its ${promptTokens} tokens in memory and reads ${rest}.`,
    because: `Tokens lent by each group: ${listed(given)}.${privately.length > 0 ? ` Its ${listed(privately)} is private: nobody lends it.` : ''}`,
  };
}

function tellAnswer({ conversation, report }: Extract<JournalEntry, { kind: 'answered' }>): Pick<Told, 'text' | 'because'> {
  const { generatedTokens, computedTokens, recomputedTokens, acceptedDrafts, draftedTokens } = report;
  const drafts = draftedTokens > 0 ? ` ${acceptedDrafts} of ${counted(draftedTokens, 'guess', 'guesses')} ahead were right.` : '';
  const again = recomputedTokens > 0 ? ` ${counted(recomputedTokens, 'token')} had to be computed again.` : '';
  return {
    text: `${conversationName(conversation)} has answered with ${counted(generatedTokens, 'token')}, after reading ${computedTokens}.`,
    because: `Its pages stay until somebody needs the room.${drafts}${again}`,
  };
}

function pagesByGroup(entries: readonly PageEntry[], groups: readonly GroupAbout[]): string {
  const sums = new Map<number, number>();
  for (const { groupId, numPages } of entries) sums.set(groupId, (sums.get(groupId) ?? 0) + numPages);
  return listed(
    [...sums].map(([id, numPages]) => `${counted(numPages, 'page')} of ${groups[id]?.name.toLowerCase() ?? `group ${id}`}`),
  );
}
