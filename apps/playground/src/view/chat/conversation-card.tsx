import type { Signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, branch, discard, stop } from '../../state/actions.ts';
import { type ConversationView, isUnderWay, reopening } from '../../state/store.ts';
import { conversationHue, conversationName } from '../../story/names.ts';
import { Transcript } from './transcript.tsx';

const STATE_TEXTS: Readonly<Record<ConversationView['state'], string>> = {
  new: 'Nothing said yet',
  waiting: 'Waiting for room',
  reading: 'Reading',
  answering: 'Answering',
  done: 'Done',
  stopped: 'Stopped',
  failed: 'Failed',
};

/** One conversation: what was said, what it cost, and how to go on. */
export function ConversationCard({ view: { value: view } }: { view: Signal<ConversationView> }) {
  const name = conversationName(view.id);
  const running = isUnderWay(view.state);
  return (
    <article
      class="card conversation"
      aria-label={`Conversation ${name}`}
      data-state={view.state}
      style={{ '--hue': conversationHue(view.id) }}
    >
      <header>
        <h3>
          <span class="badge">{name}</span>
          <span class="state">{STATE_TEXTS[view.state]}</span>
        </h3>
        <div class="card-actions">
          <button
            type="button"
            class="button small"
            onClick={() => branch(view.id)}
            disabled={view.passages.length === 0 || reopening.value}
            aria-label={`Branch off ${name}: a new conversation that begins with all of this one`}
          >
            Branch
          </button>
          <button type="button" class="button small" onClick={() => discard(view.id)} aria-label={`Close conversation ${name}`}>
            Close
          </button>
        </div>
      </header>
      {view.passages.length > 0 && <Transcript view={view} name={name} />}
      {view.promptTokens !== null && <Costs view={view} />}
      {view.problem !== null && (
        <p class="problem" role="alert">
          {view.problem}
        </p>
      )}
      <Composer id={view.id} name={name} running={running} begun={view.passages.length > 0} />
    </article>
  );
}

function Costs({ view }: { view: ConversationView }) {
  const { promptTokens, reusedTokens, answeredTokens, timeToFirstTokenMs } = view;
  if (promptTokens === null || reusedTokens === null) return null;
  const share = promptTokens === 0 ? 0 : reusedTokens / promptTokens;
  return (
    <div class="costs">
      <div class="meter" aria-hidden="true">
        <div style={{ width: `${100 * share}%` }} />
      </div>
      <p>
        <b>{reusedTokens}</b> of {promptTokens} tokens from memory, <b>{promptTokens - reusedTokens}</b> read
        {answeredTokens > 0 && `, ${answeredTokens} answered`}
        {timeToFirstTokenMs !== null && `, first word after ${Math.round(timeToFirstTokenMs)} ms`}
      </p>
    </div>
  );
}

function Composer({ id, name, running, begun }: { id: number; name: string; running: boolean; begun: boolean }) {
  const [text, setText] = useState('');
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (!begun) field.current?.focus({ preventScroll: true });
  }, []);
  const send = () => {
    if (running || (text.trim() === '' && !begun)) return;
    const words = text.trim() === '' ? '' : begun && !/^\s/.test(text) ? ` ${text.trimEnd()}` : text.trimEnd();
    ask(id, words === '' ? [] : [words]);
    setText('');
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <label class="hidden" for={`say-${id}`}>
        Say something in {name}
      </label>
      <textarea
        id={`say-${id}`}
        ref={field}
        rows={1}
        value={text}
        placeholder={begun ? 'Go on …' : 'Say something'}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey) return;
          event.preventDefault();
          send();
        }}
      />
      {running ? (
        <button type="button" class="button stop" onClick={() => stop(id)} aria-label={`Stop ${name}`}>
          Stop
        </button>
      ) : (
        <button
          type="submit"
          class="button primary"
          aria-label={`${begun && text.trim() === '' ? 'Continue' : 'Send'} in ${name}`}
          disabled={reopening.value || (text.trim() === '' && !begun)}
        >
          {begun && text.trim() === '' ? 'Continue' : 'Send'}
        </button>
      )}
    </form>
  );
}
