import type { ComparisonSide } from '../../protocol/messages.ts';
import type { Comparison } from '../../state/store.ts';

/** One row of a comparison. */
export interface Figure {
  readonly name: string;
  readonly of: (side: ComparisonSide) => number;
  readonly text: (value: number) => string;
  /** Whether more is better; null where it is neither. */
  readonly more: boolean | null;
}

interface ComparisonViewProps {
  shown: Comparison;
  title: string;
  /** What is on the left, and on the right. */
  sides: readonly [string, string];
  figures: readonly Figure[];
  /** What is said before the first comparison. */
  invitation: string;
}

/** The same two requests under two settings, side by side. */
export function ComparisonView({ shown, title, sides, figures, invitation }: ComparisonViewProps) {
  if (shown.state === 'none') return <p class="quiet">{invitation}</p>;
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
        <caption>{title}</caption>
        <thead>
          <tr>
            <th scope="col" />
            {sides.map((side) => (
              <th key={side} scope="col">
                {side}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {figures.map((figure) => (
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
