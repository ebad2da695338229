import { textTable, wrapText } from '@bufferwise/scratch-allocator';
import type { ArgsDef } from 'citty';
import type { Terminal } from '../terminal/terminal.ts';
import type { Command } from './command.ts';

type Face = Pick<Terminal, 'columns' | 'colors'>;

const INDENT = '  ';

/** What `bufferwise` alone prints. */
export function mainHelp(commands: readonly Command[], face: Face): string {
  const { bold } = face.colors;
  const lines = [
    ...wrapText('A KV cache in which each buffer of a layer has its own reuse policy.', face.columns),
    '',
    bold('Usage'),
    `${INDENT}bufferwise COMMAND [options]`,
    '',
    bold('Commands'),
    ...pairs(
      commands.map(({ name, summary }) => [name, summary]),
      face.columns,
    ),
    '',
    ...wrapText('bufferwise COMMAND --help tells the options of a command, with examples.', face.columns),
    ...wrapText('Exit codes: 0 all is well, 1 failed, 2 a wrong command line, 130 stopped with Ctrl-C.', face.columns),
  ];
  return `${lines.join('\n')}\n`;
}

/** What `bufferwise COMMAND --help` prints. */
export function commandHelp(command: Command, face: Face): string {
  const { bold, dim } = face.colors;
  const operands = Object.entries(command.args).filter(([, { type }]) => type === 'positional');
  const options = Object.entries(command.args).filter(([, { type }]) => type !== 'positional');
  const usage = operands.map(([name, { required }]) => (required === false ? `[${name.toUpperCase()}]` : name.toUpperCase()));
  const lines = [
    ...wrapText(`${command.summary}.`, face.columns),
    '',
    bold('Usage'),
    `${INDENT}${['bufferwise', command.name, ...usage, '[options]'].join(' ')}`,
    ...chapter(
      bold('Operands'),
      operands.map(([name, { description = '' }]) => [name.toUpperCase(), description]),
      face.columns,
    ),
    ...chapter(bold('Options'), options.map(optionWords), face.columns),
    '',
    bold('Examples'),
    ...command.examples.flatMap(({ line, what }) => [
      ...wrapText(what, face.columns - 4).map((each) => `${INDENT}${dim(`# ${each}`)}`),
      `${INDENT}${line}`,
    ]),
  ];
  return `${lines.join('\n')}\n`;
}

function chapter(title: string, rows: readonly (readonly [string, string])[], columns: number): string[] {
  return rows.length === 0 ? [] : ['', title, ...pairs(rows, columns)];
}

function optionWords([name, option]: [string, ArgsDef[string]]): [string, string] {
  const { type, description = '', valueHint, default: fallback, required } = option;
  const value = type === 'enum' ? ` ${(option.options ?? []).join('|')}` : valueHint === undefined ? '' : ` ${valueHint}`;
  const rest = required ? ' (required)' : fallback === undefined || fallback === false ? '' : ` (default ${fallback})`;
  return [`--${name}${value}`, `${description}${rest}`];
}

/** Two columns; where the second would be a thin one, one below the other. */
function pairs(rows: readonly (readonly [string, string])[], columns: number): string[] {
  const first = Math.max(...rows.map(([word]) => word.length));
  if (columns - first >= 40) {
    const table = textTable(
      [
        { title: '', cells: rows.map(([word]) => word), align: 'left' },
        { title: '', cells: rows.map(([, words]) => words), align: 'left' },
      ],
      columns,
      INDENT,
    );
    return table.slice(1);
  }
  return rows.flatMap(([word, words]) => [
    `${INDENT}${word}`,
    ...wrapText(words, columns - 6).map((line) => `${INDENT}${INDENT}${INDENT}${line}`),
  ]);
}
