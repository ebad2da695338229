import type { EngineSettings } from '../protocol/about.ts';
import type { ComparedSubject, Order, Report } from '../protocol/messages.ts';
import type { Preset } from '../story/passages.ts';
import { change, receive, show } from './receive.ts';
import {
  about,
  answerOptions,
  type ConversationView,
  comparisons,
  conversations,
  FIRST_SETTINGS,
  isUnderWay,
  notice,
  phase,
  reopening,
  selectedBlock,
  stepping,
} from './store.ts';

let worker: Worker | null = null;
let nextId = 0;

/** Starts the worker, or says why there is none. */
export function start(): void {
  if (navigator.gpu === undefined) {
    phase.value = { name: 'unsupported', why: 'This browser does not offer WebGPU to this page.' };
    return;
  }
  worker = new Worker(new URL('../worker/main.ts', import.meta.url), { type: 'module', name: 'bufferwise' });
  worker.addEventListener('message', ({ data }: MessageEvent<Report>) => receive(data));
  worker.addEventListener('error', ({ message }) => {
    phase.value = { name: 'failed', message: message || 'The worker with the engine could not be started.' };
  });
  send({ type: 'open', base: document.baseURI, settings: FIRST_SETTINGS });
}

/** Another conversation with nothing said yet. @returns its number */
export function addConversation(passages: ConversationView['passages'] = []): number {
  const id = nextId++;
  show({
    id,
    passages,
    state: 'new',
    promptTokens: null,
    reusedTokens: null,
    reusedChars: 0,
    answeredTokens: 0,
    timeToFirstTokenMs: null,
    problem: null,
  });
  return id;
}

/** Says something in a conversation, and has it answered. */
export function ask(id: number, pieces: readonly string[]): void {
  const view = conversations.value.get(id);
  const text = pieces.join('');
  if (view === undefined || isUnderWay(view.value.state) || (text === '' && view.value.passages.length === 0)) return;
  change(id, (before) => ({
    ...before,
    state: 'waiting',
    passages: text === '' ? before.passages : [...before.passages, { by: 'person', text }],
  }));
  send({ type: 'ask', conversation: id, pieces, ...answerOptions.value });
}

export function stop(id: number): void {
  send({ type: 'stop', conversation: id });
}

/** Another conversation that begins with all that this one has said. */
export function branch(id: number): void {
  const from = conversations.value.get(id);
  if (from === undefined) return;
  const to = addConversation(from.value.passages);
  send({ type: 'branch', from: id, to });
}

export function discard(id: number): void {
  const left = new Map(conversations.value);
  left.delete(id);
  conversations.value = left;
  send({ type: 'discard', conversation: id });
}

/** Begins the conversations of a preset. */
export function begin(preset: Preset): void {
  const ids = preset.conversations.map(() => addConversation());
  const [first, ...others] = preset.conversations.map((pieces, i) => () => ask(ids[i], pieces));
  first();
  if (!preset.firstAlone) {
    for (const other of others) other();
    return;
  }
  // What the first one leaves is there as soon as it has read its prompt, so the others need not wait for its answer.
  const stopWatching = conversations.value.get(ids[0])?.subscribe(({ state }) => {
    if (state === 'waiting' || state === 'reading') return;
    queueMicrotask(() => {
      stopWatching?.();
      for (const other of others) other();
    });
  });
}

export function setStepping(on: boolean): void {
  stepping.value = on;
  send({ type: 'pace', stepping: on });
}

export function step(): void {
  send({ type: 'step' });
}

export function resize(deviceBytes: number): void {
  send({ type: 'resize', deviceBytes });
}

export function forget(): void {
  send({ type: 'forget' });
}

export function forgetKept(): void {
  send({ type: 'forget-kept' });
}

/** Makes another engine, with some settings changed. */
export function reopen(changes: Partial<EngineSettings>): void {
  const now = about.value?.settings;
  if (now === undefined || reopening.value) return;
  reopening.value = true;
  selectedBlock.value = null;
  send({ type: 'reopen', settings: { ...now, ...changes } });
}

/** Runs the same two requests under the settings of now with some changed, and with others. */
export function compare(subject: ComparedSubject, before: Partial<EngineSettings>, after: Partial<EngineSettings>): void {
  const now = about.value?.settings;
  if (now === undefined) return;
  comparisons[subject].value = { state: 'running', share: 0 };
  send({ type: 'compare', subject, before: { ...now, ...before }, after: { ...now, ...after } });
}

export function dismissNotice(): void {
  notice.value = '';
}

function send(order: Order): void {
  worker?.postMessage(order);
}
