/** One column of a text table. */
export interface TextColumn {
  readonly title: string;
  /** As many as in every other column. */
  readonly cells: readonly string[];
  /** Numbers go to the right, words to the left. */
  readonly align: 'left' | 'right';
}

const GAP = '  ';
/** Below this a wrapped column is no longer readable, and the table is cut instead. */
const MIN_WRAPPED = 12;

/**
 * Lines of a table with aligned columns. Where it is wider than `width`, a last column of words is wrapped; else it is cut into
 * several tables one below the other, each with the first column. Only a column that is too wide by itself runs over.
 *
 * @param width  characters a line may have
 * @param indent put before each line
 */
export function textTable(columns: readonly TextColumn[], width: number, indent = ''): string[] {
  const room = width - indent.length;
  const widths = columns.map(({ title, cells }) => Math.max(title.length, ...cells.map((cell) => cell.length)));
  const last = columns.length - 1;
  const lastRoom = room - widthOf(widths.slice(0, last)) - GAP.length;
  if (widthOf(widths) <= room) return renderRows(columns, widths, indent);
  if (columns[last].align === 'left' && lastRoom >= MIN_WRAPPED)
    return renderRows(columns, [...widths.slice(0, last), lastRoom], indent);
  let fitting = 2;
  while (fitting < columns.length && widthOf(widths.slice(0, fitting + 1)) <= room) fitting++;
  const rest = columns.slice(fitting);
  const lines = renderRows(columns.slice(0, fitting), widths.slice(0, fitting), indent);
  return rest.length === 0 ? lines : [...lines, '', ...textTable([columns[0], ...rest], width, indent)];
}

/** A space at which a line may end: not between a number and its unit. */
const BREAK = / (?!(?:[KMGTP]i)?B\b)/;

/**
 * Cuts a text at its spaces into lines of at most `width` characters; a longer word gets a line of its own.
 *
 * @returns at least one line
 */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(BREAK)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}

function widthOf(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, 0) + GAP.length * Math.max(0, widths.length - 1);
}

function renderRows(columns: readonly TextColumn[], widths: readonly number[], indent: string): string[] {
  const rows = [columns.map(({ title }) => title), ...columns[0].cells.map((_, row) => columns.map(({ cells }) => cells[row]))];
  return rows.flatMap((row) => renderRow(row, columns, widths, indent));
}

/** One row, of more than one line where its last cell is wrapped. */
function renderRow(row: readonly string[], columns: readonly TextColumn[], widths: readonly number[], indent: string): string[] {
  const last = row.length - 1;
  const lastLines = columns[last].align === 'left' ? wrapText(row[last], widths[last]) : [row[last]];
  return lastLines.map((lastCell, line) => {
    const cells = row.map((cell, column) => (column === last ? lastCell : line === 0 ? cell : ''));
    const padded = cells.map((cell, column) =>
      columns[column].align === 'left' ? cell.padEnd(widths[column]) : cell.padStart(widths[column]),
    );
    return `${indent}${padded.join(GAP)}`.trimEnd();
  });
}
