/**
 * Shows what a benchmark returns: rows of named figures, or one such row. A benchmark that returns nothing has printed for itself.
 *
 * @param {Record<string, unknown>[] | Record<string, unknown> | undefined} figures
 */
export function showFigures(figures) {
  if (figures === undefined || figures === null) return;
  const rows = Array.isArray(figures) ? figures : [figures];
  console.table(rows.map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, readable(value)]))));
}

/** Four digits say all that a benchmark knows; whole numbers stay as they are. */
const readable = (value) => (typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value);
