import { useEffect, useRef } from 'preact/hooks';
import { anyRunning, sentences, stepping } from '../state/store.ts';

/** What happened, in plain words, the latest at the end. */
export function StoryPanel() {
  const box = useRef<HTMLDivElement>(null);
  const { value: told } = sentences;
  useEffect(() => {
    const { current: element } = box;
    if (element !== null) element.scrollTop = element.scrollHeight;
  }, [told.at(-1)]);
  return (
    <div class="story">
      <p class="quiet">
        {stepping.value
          ? anyRunning.value
            ? 'Every conversation waits. “Next step” lets each of them have its next token.'
            : 'Step by step is on: begin a conversation, then take its steps one by one.'
          : 'As it happens. Switch “Step by step” on to go through it at your own pace.'}
      </p>
      <div class="log" ref={box} role="log" aria-label="What happened" aria-live="polite" tabIndex={0}>
        <ol>
          {told.map((sentence) => (
            <li key={sentence.id} data-kind={sentence.kind} style={hueOf(sentence.conversation)}>
              <p>{sentence.text}</p>
              {sentence.because !== undefined && <p class="because">{sentence.because}</p>}
            </li>
          ))}
        </ol>
      </div>
    </div>
  );
}

function hueOf(conversation: number | undefined) {
  return conversation === undefined ? undefined : { '--hue': `var(--hue-${conversation % 8})` };
}
