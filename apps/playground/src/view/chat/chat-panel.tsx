import { addConversation, begin } from '../../state/actions.ts';
import { answerOptions, conversations, reopening } from '../../state/store.ts';
import { PRESETS } from '../../story/passages.ts';
import { ConversationCard } from './conversation-card.tsx';

/** All conversations, and ways to begin some. */
export function ChatPanel() {
  const shown = [...conversations.value];
  return (
    <section class="panel chat" id="chat" aria-labelledby="chat-title" tabIndex={-1}>
      <div class="panel-head">
        <h2 id="chat-title">Conversations</h2>
        <button type="button" class="button small" onClick={() => addConversation()} disabled={reopening.value}>
          New
        </button>
      </div>
      <Presets compact={shown.length > 0} />
      <Options />
      <div class="cards">
        {shown.map(([id, view]) => (
          <ConversationCard key={id} view={view} />
        ))}
      </div>
    </section>
  );
}

function Presets({ compact }: { compact: boolean }) {
  return (
    <div class={compact ? 'presets compact' : 'presets'}>
      {!compact && (
        <p class="lead">
          Language models remember what they have read, in pages of memory. Here several conversations share those pages. Begin
          with one of these, and watch.
        </p>
      )}
      <ul>
        {PRESETS.map((preset) => (
          <li key={preset.id}>
            <button
              type="button"
              class="preset"
              title={compact ? preset.shows : undefined}
              onClick={() => begin(preset)}
              disabled={reopening.value}
            >
              <strong>{preset.title}</strong>
              {!compact && <span>{preset.shows}</span>}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

const LENGTHS = [8, 16, 32, 64, 128];
const TEMPERATURES = [
  { value: 0, name: 'most likely words' },
  { value: 0.7, name: 'some surprise' },
  { value: 1, name: 'more surprise' },
];

function Options() {
  const { maxNewTokens, temperature } = answerOptions.value;
  return (
    <div class="options">
      <label>
        Answer
        <select
          aria-label="Length of answers"
          value={maxNewTokens}
          onChange={({ currentTarget }) => {
            answerOptions.value = { ...answerOptions.value, maxNewTokens: Number(currentTarget.value) };
          }}
        >
          {LENGTHS.map((length) => (
            <option key={length} value={length}>
              {length} tokens
            </option>
          ))}
        </select>
      </label>
      <label>
        with
        <select
          aria-label="Choice of words"
          value={temperature}
          onChange={({ currentTarget }) => {
            answerOptions.value = { ...answerOptions.value, temperature: Number(currentTarget.value) };
          }}
        >
          {TEMPERATURES.map(({ value, name }) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}
