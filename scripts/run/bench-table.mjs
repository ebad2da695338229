/**
 * One figure of a benchmark.
 *
 * @typedef {object} FigureRow
 * @property {string} name what was measured: the labels of the row, `field value` each
 * @property {string} metric
 * @property {number} value
 * @property {string} unit
 * @property {'lower' | 'higher' | 'none'} better `none`: not to be judged by
 */

/**
 * Shows what a benchmark returns: rows of labels and figures.
 *
 * @param {readonly Record<string, unknown>[]} rows
 */
export function showFigures(rows) {
  if (rows.length === 0) return;
  console.table(rows.map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, readable(value)]))));
}

/** Four digits say all that a benchmark knows; whole numbers stay as they are. */
const readable = (value) => (typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value);

/**
 * Takes the rows of a bench apart into figures.
 *
 * @param {readonly Record<string, unknown>[]} rows
 * @param {Record<string, { unit: string | ((row: any) => string), better: 'lower' | 'higher' | 'none' }>} columns which fields are figures; the
 *   others, but for `unit`, name the row
 * @returns {FigureRow[]}
 */
export function figureRows(rows, columns) {
  return rows.flatMap((row) => {
    const labels = Object.entries(row).filter(([field]) => !Object.hasOwn(columns, field) && field !== 'unit');
    const name = labels.map(([field, value]) => (labels.length === 1 ? `${value}` : `${field} ${value}`)).join(', ');
    return Object.entries(columns).flatMap(([metric, { unit, better }]) => {
      const value = row[metric];
      if (typeof value !== 'number' || !Number.isFinite(value)) return [];
      return [{ name, metric, value, unit: typeof unit === 'function' ? unit(row) : unit, better }];
    });
  });
}
