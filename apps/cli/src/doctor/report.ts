import { wrapText } from '@bufferwise/scratch-allocator';
import type { Terminal } from '../terminal/terminal.ts';
import type { Finding } from './finding.ts';

const LABEL_WIDTH = 18;

/** Findings for people, one after the other. */
export function findingsText(findings: readonly Finding[], { columns, colors }: Pick<Terminal, 'columns' | 'colors'>): string {
  const marks = { ok: colors.green('ok  '), warn: colors.yellow('note'), fail: colors.red('FAIL') };
  const width = columns - LABEL_WIDTH - 5;
  const lines = findings.flatMap(({ name, state, found, means, mend }) => {
    const rows = [...wrapText(found, width), ...wrapText(means, width).map(colors.dim)];
    const mending = mend === null ? [] : wrapText(`To mend: ${mend}`, width);
    return [...rows, ...mending].map(
      (row, index) => `${index === 0 ? `${marks[state]} ${name.padEnd(LABEL_WIDTH)}` : ' '.repeat(LABEL_WIDTH + 5)}${row}`,
    );
  });
  return [...lines, '', verdict(findings, colors)].join('\n').concat('\n');
}

function verdict(findings: readonly Finding[], colors: Terminal['colors']): string {
  const failed = findings.filter(({ state }) => state === 'fail').map(({ name }) => name);
  if (failed.length > 0) return colors.red(`Not ready: ${failed.join(', ')}.`);
  const notes = findings.filter(({ state }) => state === 'warn').length;
  return colors.green(notes === 0 ? 'Ready.' : `Ready, with ${notes} ${notes === 1 ? 'note' : 'notes'}.`);
}
