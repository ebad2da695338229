import { anyRunning, sentences, stepping } from '../state/store.ts';
import { conversationHue } from '../story/names.ts';
import { ScrollRegion } from './parts/scroll-region.tsx';

/** What happened, in plain words, the latest at the end. */
export function StoryPanel() {
  const { value: told } = sentences;
  return (
    <div class="story">
      <p class="quiet">
        {stepping.value
          ? anyRunning.value
            ? 'Every conversation waits. “Next step” lets each of them have its next token.'
            : 'Step by step is on: begin a conversation, then take its steps one by one.'
          : 'As it happens. Switch “Step by step” on to go through it at your own pace.'}
      </p>
      <ScrollRegion kind="log" label="What happened" follows={told.at(-1)}>
        <div role="log" aria-live="off">
          <ol>
            {told.map((sentence) => (
              <li key={sentence.id} data-kind={sentence.kind} style={hueOf(sentence.conversation)}>
                <p>{sentence.text}</p>
                {sentence.because !== undefined && <p class="because">{sentence.because}</p>}
              </li>
            ))}
          </ol>
        </div>
      </ScrollRegion>
    </div>
  );
}

function hueOf(conversation: number | undefined) {
  return conversation === undefined ? undefined : { '--hue': conversationHue(conversation) };
}
