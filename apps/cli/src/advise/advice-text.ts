import { formatBytes, formatCount, type TextColumn, textTable, wrapText } from '@bufferwise/scratch-allocator';
import { percent } from '../replay/replay-text.ts';
import type { Terminal } from '../terminal/terminal.ts';
import type { Advice } from './make-advice.ts';
import type { ChoiceFigures } from './trials.ts';

/** Below this a line of the tables is cut in pieces anyway. */
const MIN_COLUMNS = 60;

/** Advice for people. */
export function adviceText(model: string, advice: Advice, { columns, colors }: Pick<Terminal, 'columns' | 'colors'>): string {
  const width = Math.max(MIN_COLUMNS, columns);
  const { memory, requests, meanLength, maxRunning, choices, best, policies, reasons, warnings } = advice;
  const served = `${formatCount(requests)} requests of ${formatCount(meanLength)} tokens in the mean, at most ${formatCount(maxRunning)} at a time.`;
  const sections = [
    [colors.bold(`${model}, ${formatBytes(memory)}: which policies`), ...wrapText(served, width)],
    [colors.bold('Buffers'), ...textTable(classColumns(advice), width, '  ')],
    [colors.bold('What is not required, and what it comes to'), ...choiceLines(advice, width)],
    [
      colors.bold(`Best: ${choices[best].name}`),
      // To be copied, so the line is not broken.
      `  --policies ${policies}`,
      ...bullets([...reasons, againstWords(advice)], width),
    ],
    warnings.length === 0 ? [] : [colors.yellow('Warnings'), ...bullets(warnings, width)],
  ];
  return `${sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`;
}

function classColumns({ classes }: Advice): TextColumn[] {
  return [
    { title: 'class', align: 'left', cells: classes.map(({ name }) => name) },
    { title: 'layers', align: 'right', cells: classes.map(({ layerIds }) => formatCount(layerIds.length)) },
    { title: 'bytes', align: 'right', cells: classes.map(({ bytes, per }) => `${formatBytes(Math.round(bytes))} a ${per}`) },
  ];
}

/** The best one is marked. Where the names leave no room beside them, choices get a number. */
function choiceLines({ choices, best }: Advice, width: number): string[] {
  const marked = choices.map(({ name }, index) => `${index === best ? '* ' : '  '}${name}`);
  const figures: TextColumn[] = [
    { title: 'spared', align: 'right', cells: choices.map(({ savedRate }) => percent(savedRate)) },
    { title: 'reused', align: 'right', cells: choices.map(({ hitRate }) => percent(hitRate)) },
    { title: 'run again', align: 'right', cells: choices.map(({ recomputedTokens }) => formatCount(recomputedTokens)) },
    { title: 'kept', align: 'right', cells: choices.map(({ keptBytes }) => formatBytes(keptBytes)) },
    { title: 'a token', align: 'right', cells: choices.map((each) => formatBytes(Math.round(each.sharedBytesPerToken))) },
    { title: 'fit', align: 'right', cells: choices.map(fitWords) },
  ];
  const full = textTable([{ title: '  choice', align: 'left', cells: marked }, ...figures], Number.POSITIVE_INFINITY, '');
  if (Math.max(...full.map((line) => line.length)) <= width) return full;
  const numbers = choices.map((_, index) => `${index === best ? '* ' : '  '}${index}`);
  return [
    ...textTable([{ title: '  #', align: 'left', cells: numbers }, ...figures], width, ''),
    '',
    ...choices.flatMap(({ name }, index) =>
      wrapText(name, width - 6).map((line, i) => (i === 0 ? `${numbers[index].padEnd(5)} ${line}` : `      ${line}`)),
    ),
  ];
}

function fitWords({ numFitting }: ChoiceFigures): string {
  return numFitting === null ? 'any' : formatCount(numFitting);
}

function againstWords({ choices, best, against, promptTokens }: Advice): string {
  if (best === 0) return 'Against whole: nothing is won by requiring less.';
  const whole = choices[0];
  const chosen = choices[best];
  const share = whole.computedTokens === 0 ? 0 : against.computedTokens / whole.computedTokens;
  const work = `${formatCount(whole.computedTokens)} → ${formatCount(chosen.computedTokens)} of ${formatCount(promptTokens)} prompt tokens computed (${percent(Math.abs(share))} ${share >= 0 ? 'less' : 'more'})`;
  const kept = `${formatCount(whole.keptTokens)} → ${formatCount(chosen.keptTokens)} tokens kept in ${formatBytes(whole.keptBytes)} → ${formatBytes(chosen.keptBytes)}`;
  return `Against whole: ${work}, ${kept}.`;
}

function bullets(sentences: readonly string[], width: number): string[] {
  return sentences.flatMap((sentence) =>
    wrapText(sentence, width - 4).map((line, index) => `${index === 0 ? '  - ' : '    '}${line}`),
  );
}
