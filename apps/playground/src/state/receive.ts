import { batch, signal } from '@preact/signals';
import type { Report, TurnUpdate } from '../protocol/messages.ts';
import { type Sentence, tell } from '../story/tell.ts';
import {
  about,
  type ConversationView,
  chosenPolicies,
  comparisons,
  conversations,
  frame,
  groups,
  journal,
  notice,
  phase,
  reopening,
  sentences,
  statistics,
  stepping,
  tree,
} from './store.ts';

/** Looks that the time line keeps, and sentences that the story does. */
const MAX_LOOKS = 160;
const MAX_SENTENCES = 200;

let numTold = 0;

/** Takes what the worker tells into the page. */
export function receive(report: Report): void {
  batch(() => {
    switch (report.type) {
      case 'progress':
        phase.value = { name: 'starting', what: report.what, share: report.share };
        break;
      case 'unsupported':
        phase.value = { name: 'unsupported', why: report.why };
        break;
      case 'failed':
        phase.value = { name: 'failed', message: report.message };
        break;
      case 'notice':
        notice.value = report.message;
        break;
      case 'ready':
        about.value = report.about;
        chosenPolicies.value =
          reopening.value || phase.value.name !== 'running' ? report.about.settings.policies : chosenPolicies.value;
        phase.value = { name: 'running' };
        reopening.value = false;
        break;
      case 'frame':
        frame.value = report.frame;
        break;
      case 'tree':
        tree.value = report.tree;
        break;
      case 'statistics':
        statistics.value = report.statistics;
        break;
      case 'journal':
        journal.value = [...journal.value, report.entries].slice(-MAX_LOOKS);
        sentences.value = [...sentences.value, ...numbered(tell(report.entries, groups.value))].slice(-MAX_SENTENCES);
        break;
      case 'said':
        change(report.conversation, (view) => said(view, report.text, report.numTokens));
        break;
      case 'turn':
        change(report.conversation, (view) => turned(view, report));
        break;
      case 'comparison':
        comparisons[report.subject].value = report;
        break;
    }
  });
}

/** Changes how a conversation is shown. One that is not there any more has nothing to show. */
export function change(id: number, how: (view: ConversationView) => ConversationView): void {
  const view = conversations.value.get(id);
  if (view !== undefined) view.value = how(view.value);
}

/** Shows another conversation. */
export function show(view: ConversationView): void {
  conversations.value = new Map(conversations.value).set(view.id, signal(view));
}

/** Sentences in which a reason is not given again. */
const REASON_LASTS = 25;
/** Number of the sentence with which each reason was given last. */
const given = new Map<string, number>();

/** Numbers what is told, and leaves out reasons that were given just before, but where somebody goes through it step by step. */
function numbered(told: readonly Sentence[]): (Sentence & { id: number })[] {
  return told.map((sentence) => {
    const id = numTold++;
    const { because } = sentence;
    if (because === undefined) return { ...sentence, id };
    const last = given.get(because);
    if (last !== undefined && id - last < REASON_LASTS && !stepping.peek()) return { ...sentence, because: undefined, id };
    given.set(because, id);
    return { ...sentence, id };
  });
}

function said(view: ConversationView, text: string, numTokens: number): ConversationView {
  const last = view.passages.at(-1);
  const passages =
    last?.by === 'model'
      ? [...view.passages.slice(0, -1), { by: 'model' as const, text: last.text + text }]
      : [...view.passages, { by: 'model' as const, text }];
  return { ...view, passages, state: 'answering', answeredTokens: view.answeredTokens + numTokens };
}

function turned(view: ConversationView, turn: TurnUpdate): ConversationView {
  return {
    ...view,
    state: turn.state,
    promptTokens: turn.promptTokens ?? view.promptTokens,
    reusedTokens: turn.state === 'waiting' ? null : (turn.reusedTokens ?? view.reusedTokens),
    reusedChars: turn.reusedChars ?? (turn.state === 'waiting' ? 0 : view.reusedChars),
    answeredTokens: turn.state === 'waiting' ? 0 : view.answeredTokens,
    timeToFirstTokenMs: turn.report?.timeToFirstTokenMs ?? (turn.state === 'waiting' ? null : view.timeToFirstTokenMs),
    problem: turn.message ?? null,
  };
}
