import { formatBytes, formatCount, formatExplanation, type TextColumn, textTable, wrapText } from '@bufferwise/scratch-allocator';
import type { Terminal } from '../terminal/terminal.ts';
import type { Plan, VariantFigures } from './make-plan.ts';

/** Below this a line of the tables is cut in pieces anyway. */
const MIN_COLUMNS = 60;

/** A plan for people. */
export function planText(plan: Plan, { columns, colors }: Pick<Terminal, 'columns' | 'colors'>): string {
  const width = Math.max(MIN_COLUMNS, columns);
  const { preset, memory, typicalLength, warnings } = plan;
  const title = `${plan.model} (${preset.family}, ${preset.variant}), ${formatBytes(memory)}`;
  const shared = `Memory is shared out for requests of ${formatCount(typicalLength)} tokens.`;
  const sections = [
    [colors.bold(title), ...wrapText(shared, width)],
    [formatExplanation(plan.explanation, { width })],
    [colors.bold('Whole or split'), ...variantLines(plan, width)],
    section(colors.bold('Notes'), preset.notes, width),
    section(colors.yellow('Warnings'), warnings, width),
  ];
  return `${sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`;
}

function section(title: string, sentences: readonly string[], width: number): string[] {
  return sentences.length === 0 ? [] : [title, ...sentences.flatMap((sentence) => bullet(sentence, width))];
}

function bullet(sentence: string, width: number): string[] {
  return wrapText(sentence, width - 4).map((line, index) => `${index === 0 ? '  - ' : '    '}${line}`);
}

/** What the two variants differ in, and what it takes to have again what split frees. */
function variantLines({ variants, lengths, split, preset }: Plan, width: number): string[] {
  const rows = rowsOf(lengths).filter(({ cell }) => variants.some((each) => cell(each) !== NOTHING));
  const columns: TextColumn[] = [
    { title: '', align: 'left', cells: rows.map(({ label }) => label) },
    ...variants.map((each): TextColumn => ({ title: each.variant, align: 'right', cells: rows.map(({ cell }) => cell(each)) })),
  ];
  const savings = split.savings.map(({ sentence }) => sentence);
  const notes = split.notes.filter((note) => !preset.notes.includes(note));
  return [...textTable(columns, width, '  '), ...[...savings, ...notes].flatMap((sentence) => bullet(sentence, width))];
}

const NOTHING = '-';

function rowsOf(lengths: readonly number[]): { label: string; cell(figures: VariantFigures): string }[] {
  const bytes = (value: number) => (value === 0 ? NOTHING : formatBytes(value));
  return [
    { label: 'a token that a match needs', cell: ({ bytesPerToken }) => bytes(bytesPerToken.required) },
    { label: 'a token that it does not', cell: ({ bytesPerToken }) => bytes(bytesPerToken.optional + bytesPerToken.private) },
    { label: 'a snapshot of state', cell: ({ bytesPerSequence: { required, optional } }) => bytes(required + optional) },
    { label: 'state of a request alone', cell: ({ bytesPerSequence }) => bytes(bytesPerSequence.private) },
    ...lengths.map((length, index) => ({
      label: `fit, of ${formatCount(length)} tokens`,
      cell: ({ numFitting }: VariantFigures) => (numFitting[index] === null ? 'any' : formatCount(numFitting[index])),
    })),
  ];
}
