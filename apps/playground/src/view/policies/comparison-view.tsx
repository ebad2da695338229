import type { ComparisonSide } from '../../protocol/messages.ts';
import { comparison } from '../../state/store.ts';
import { bytesText } from '../../story/names.ts';

interface Figure {
  readonly name: string;
  readonly of: (side: ComparisonSide) => number;
  readonly text: (value: number) => string;
  /** Whether more is better; null where it is neither. */
  readonly more: boolean | null;
}

const plain = (value: number) => value.toLocaleString('en');

const FIGURES: readonly Figure[] = [
  { name: 'Left for others by the first', of: ({ leftBytes }) => leftBytes, text: bytesText, more: null },
  { name: 'Memory at most', of: ({ peakBytes }) => peakBytes, text: bytesText, more: false },
  { name: 'Found by the second, tokens', of: ({ second }) => second.reusedTokens, text: plain, more: true },
  { name: 'Read by the second', of: ({ second }) => second.computedTokens, text: plain, more: false },
  { name: 'Computed again', of: ({ second }) => second.recomputedTokens, text: plain, more: false },
  { name: 'First word after, ms', of: ({ second }) => Math.round(second.timeToFirstTokenMs), text: plain, more: false },
];

/** The same two requests under the model's own policies and under the chosen ones, side by side. */
export function ComparisonView() {
  const { value: shown } = comparison;
  if (shown.state === 'none')
    return (
      <p class="quiet">
        “Compare” runs the same two requests under the model's own policies and under yours, in engines of their own.
      </p>
    );
  if (shown.state === 'running')
    return (
      <p role="status">
        <progress max={1} value={shown.share} aria-label="Comparing" /> Two engines, four requests …
      </p>
    );
  if (shown.state === 'failed')
    return (
      <p class="problem" role="alert">
        {shown.message}
      </p>
    );
  const { before, after, sameText } = shown;
  return (
    <div class="comparison" role="status">
      <table>
        <caption>Two requests, one beginning</caption>
        <thead>
          <tr>
            <th scope="col" />
            <th scope="col">the model's own</th>
            <th scope="col">yours</th>
          </tr>
        </thead>
        <tbody>
          {FIGURES.map((figure) => (
            <FigureRow key={figure.name} figure={figure} before={figure.of(before)} after={figure.of(after)} />
          ))}
        </tbody>
      </table>
      <p class={sameText ? 'good' : 'problem'}>
        {sameText ? 'Both answer with the same words, token by token.' : 'The answers differ.'}
      </p>
    </div>
  );
}

function FigureRow({ figure, before, after }: { figure: Figure; before: number; after: number }) {
  const most = Math.max(before, after, 1);
  const verdict = figure.more === null || before === after ? undefined : after > before === figure.more ? 'better' : 'worse';
  return (
    <tr>
      <th scope="row">{figure.name}</th>
      {[before, after].map((value, side) => (
        <td key={side} class={side === 1 ? verdict : undefined}>
          <span>{figure.text(value)}</span>
          <div class="bar" aria-hidden="true">
            <div style={{ width: `${(100 * value) / most}%` }} />
          </div>
        </td>
      ))}
    </tr>
  );
}
