import { formatBytes, formatCount, type TextColumn, textTable, wrapText } from '@bufferwise/scratch-allocator';
import type { Terminal } from '../terminal/terminal.ts';
import type { ReplayResult, ReplaySample } from './replay-result.ts';

/** Lines of the table over time. */
const NUM_LINES = 8;

const PREEMPTED =
  'Pages of groups count every time a request begins, also again after it made way; tokens of prompts count once.';

/** What a replay came to, of one setting or of several side by side, for people. */
export function replayText(results: readonly ReplayResult[], { columns, colors }: Pick<Terminal, 'columns' | 'colors'>): string {
  const titles = results.length === 1 ? [''] : results.map((_, index) => String.fromCharCode(65 + index));
  const labels = results.map(({ label }, index) => colors.bold(`${titles[index]}${titles[index] && ': '}${label}`));
  const lines = [
    ...labels,
    '',
    // One setting needs no letter above its figures.
    ...textTable(figureColumns(results, titles), columns, '  ').slice(results.length === 1 ? 1 : 0),
    ...results.flatMap((result, index) => [
      '',
      colors.bold(`${titles[index]}${titles[index] && ': '}groups`),
      ...textTable(groupColumns(result), columns, '  '),
      '',
      colors.bold(`${titles[index]}${titles[index] && ': '}hit rate over time`),
      ...textTable(timeColumns(result), columns, '  '),
    ]),
    ...(results.some(({ preemptions }) => preemptions > 0) ? ['', ...wrapText(PREEMPTED, columns)] : []),
  ];
  return `${lines.join('\n')}\n`;
}

/** Figures of the whole run, by name. */
const FIGURES: readonly { readonly name: string; of(result: ReplayResult): string }[] = [
  { name: 'requests', of: ({ requests }) => formatCount(requests) },
  { name: 'never fit', of: ({ skipped }) => formatCount(skipped) },
  { name: 'answers cut', of: ({ truncated }) => formatCount(truncated) },
  { name: 'preemptions', of: ({ preemptions }) => formatCount(preemptions) },
  { name: 'prompt tokens', of: ({ promptTokens }) => formatCount(promptTokens) },
  { name: 'of these reused', of: ({ hitTokens, hitRate }) => `${formatCount(hitTokens)} (${percent(hitRate)})` },
  { name: 'answer tokens', of: ({ outputTokens }) => formatCount(outputTokens) },
  { name: 'second runs', of: ({ rebuilds }) => formatCount(rebuilds) },
  { name: 'computed again', of: ({ recomputedTokens }) => formatCount(recomputedTokens) },
  { name: 'model spared', of: ({ savedRate }) => percent(savedRate) },
  { name: 'pages evicted', of: ({ groups }) => formatCount(sum(groups.map(({ evictedPages }) => evictedPages))) },
  { name: 'to colder tiers', of: ({ groups }) => formatBytes(sum(groups.map(({ offloadedBytes }) => offloadedBytes))) },
  { name: 'back from them', of: ({ groups }) => formatBytes(sum(groups.map(({ onboardedBytes }) => onboardedBytes))) },
  { name: 'kept at the end', of: ({ keptBytes }) => formatBytes(keptBytes) },
  { name: 'calls a second', of: ({ operationsPerSecond }) => formatCount(Math.round(operationsPerSecond)) },
];

const DISK_FIGURES: typeof FIGURES = [
  { name: 'written to disk', of: ({ disk }) => (disk === null ? '-' : formatBytes(disk.writtenBytes)) },
  { name: 'read from disk', of: ({ disk }) => (disk === null ? '-' : formatBytes(disk.readBytes)) },
  { name: 'calls of the disk', of: ({ disk }) => (disk === null ? '-' : formatCount(disk.writes + disk.reads)) },
];

/** The figures that these results have. */
export function figuresOf(results: readonly ReplayResult[]): typeof FIGURES {
  return results.some(({ disk }) => disk !== null) ? [...FIGURES.slice(0, -1), ...DISK_FIGURES, ...FIGURES.slice(-1)] : FIGURES;
}

function figureColumns(results: readonly ReplayResult[], titles: readonly string[]): TextColumn[] {
  const figures = figuresOf(results);
  return [
    { title: '', align: 'left', cells: figures.map(({ name }) => name) },
    ...results.map(
      (result, index): TextColumn => ({ title: titles[index], align: 'right', cells: figures.map(({ of }) => of(result)) }),
    ),
  ];
}

function groupColumns({ groups }: ReplayResult): TextColumn[] {
  const column = (title: string, cells: readonly string[], align: TextColumn['align'] = 'right'): TextColumn => ({
    title,
    cells,
    align,
  });
  return [
    column(
      'group',
      groups.map(({ groupId, kind }) => `${groupId} ${kind}`),
      'left',
    ),
    column(
      'policy',
      groups.map(({ policy }) => policy),
      'left',
    ),
    column(
      'hit',
      groups.map(({ hitRate, reusedPages, missedPages }) => (reusedPages + missedPages === 0 ? '-' : percent(hitRate))),
    ),
    column(
      'pages reused',
      groups.map(({ reusedPages }) => formatCount(reusedPages)),
    ),
    column(
      'missed',
      groups.map(({ missedPages }) => formatCount(missedPages)),
    ),
    column(
      'evicted',
      groups.map(({ evictedPages }) => formatCount(evictedPages)),
    ),
    column(
      'offloaded',
      groups.map(({ offloadedBytes }) => formatBytes(offloadedBytes)),
    ),
    column(
      'onboarded',
      groups.map(({ onboardedBytes }) => formatBytes(onboardedBytes)),
    ),
  ];
}

function timeColumns({ samples, groups }: ReplayResult): TextColumn[] {
  const every = Math.max(1, Math.ceil(samples.length / NUM_LINES));
  const runs: ReplaySample[][] = [];
  for (let from = 0; from < samples.length; from += every) runs.push(samples.slice(from, from + every));
  const cells = (of: (run: readonly ReplaySample[]) => string) => runs.map(of);
  return [
    { title: 'requests', align: 'right', cells: cells((run) => formatCount(run[run.length - 1].requests)) },
    {
      title: 'prompt',
      align: 'right',
      cells: cells((run) =>
        percent(sum(run.map(({ hitTokens }) => hitTokens)) / sum(run.map(({ promptTokens }) => promptTokens))),
      ),
    },
    ...groups.map(
      ({ groupId }): TextColumn => ({ title: `group ${groupId}`, align: 'right', cells: cells((run) => meanRate(run, groupId)) }),
    ),
    {
      title: 'evicted',
      align: 'right',
      cells: cells((run) => formatCount(sum(run.flatMap(({ evictedPages }) => evictedPages)))),
    },
  ];
}

function meanRate(run: readonly ReplaySample[], group: number): string {
  const rates = run.flatMap(({ hitRates }) => hitRates[group] ?? []);
  return rates.length === 0 ? '-' : percent(sum(rates) / rates.length);
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
