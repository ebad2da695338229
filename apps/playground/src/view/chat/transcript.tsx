import { useEffect, useRef } from 'preact/hooks';
import type { ConversationView, Passage } from '../../state/store.ts';

/** What was said: who said it, and which part of it was found in memory. */
export function Transcript({ view, name }: { view: ConversationView; name: string }) {
  const box = useRef<HTMLDivElement>(null);
  const length = view.passages.reduce((sum, { text }) => sum + text.length, 0);
  useEffect(() => {
    const { current: element } = box;
    if (element !== null) element.scrollTop = element.scrollHeight;
  }, [length]);
  return (
    <div class="transcript" ref={box} role="region" tabIndex={0} aria-label={`What was said in ${name}`}>
      <p>
        {piecesOf(view.passages, view.reusedChars).map(({ by, text, found }, index) => (
          <span key={index} class={`${by}${found ? ' found' : ''}`} title={found ? 'Found in memory' : undefined}>
            {text}
          </span>
        ))}
      </p>
    </div>
  );
}

/** Passages, cut where what was found in memory ends. */
function piecesOf(passages: readonly Passage[], reusedChars: number): (Passage & { found: boolean })[] {
  let left = reusedChars;
  return passages.flatMap(({ by, text }) => {
    const found = Math.min(left, text.length);
    left -= found;
    return [
      { by, text: text.slice(0, found), found: true },
      { by, text: text.slice(found), found: false },
    ].filter((piece) => piece.text !== '');
  });
}
