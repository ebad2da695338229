import type { ConversationView, Passage } from '../../state/store.ts';
import { ScrollRegion } from '../parts/scroll-region.tsx';

/** What was said: who said it, and which part of it was found in memory. */
export function Transcript({ view, name }: { view: ConversationView; name: string }) {
  const length = view.passages.reduce((sum, { text }) => sum + text.length, 0);
  return (
    <ScrollRegion kind="transcript" label={`What was said in ${name}`} follows={length}>
      <p>
        {piecesOf(view.passages, view.reusedChars).map(({ by, text, found }, index) => (
          <span key={index} class={`${by}${found ? ' found' : ''}`} title={found ? 'Found in memory' : undefined}>
            {text}
          </span>
        ))}
      </p>
    </ScrollRegion>
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
