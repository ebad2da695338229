import { createColors } from 'picocolors';
import { expect, it } from 'vitest';
import { progressBar } from './progress-bar.ts';

const CLEAR_LINE = `\r${String.fromCharCode(27)}[2K`;

function watched(isWatched: boolean, columns = 80) {
  const told: string[] = [];
  const signal = new AbortController().signal;
  return {
    told,
    terminal: {
      columns,
      isWatched,
      signal,
      colors: createColors(false),
      print: () => {},
      tell: (text: string) => void told.push(text),
    },
  };
}

it('draws over itself, at most every 80 milliseconds, and goes away without a trace', () => {
  const { told, terminal } = watched(true);
  let time = 0;
  const bar = progressBar(terminal, () => time);
  bar.update(1, 4, 'one');
  bar.update(2, 4, 'too soon');
  time = 80;
  bar.update(2, 4, 'two');
  bar.clear();
  bar.clear();
  expect(told).toEqual([
    `${CLEAR_LINE}${'━'.repeat(6)}${'╌'.repeat(18)}  25 %  one`,
    `${CLEAR_LINE}${'━'.repeat(12)}${'╌'.repeat(12)}  50 %  two`,
    CLEAR_LINE,
  ]);
});

it('stays within the line', () => {
  const { told, terminal } = watched(true, 60);
  progressBar(terminal).update(1, 1, 'x'.repeat(100));
  expect(told[0].slice(CLEAR_LINE.length)).toHaveLength(59);
});

it('says nothing where nobody watches', () => {
  const { told, terminal } = watched(false);
  const bar = progressBar(terminal);
  bar.update(1, 2, 'x');
  bar.clear();
  expect(told).toEqual([]);
});
