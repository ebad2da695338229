import { spawnSync } from 'node:child_process';
import { cpus, totalmem } from 'node:os';
import { CommandError } from './process.mjs';
import { root } from './workspace.mjs';

/** Goes up when a field changes its meaning or goes; new fields may come without. */
export const SCHEMA_VERSION = 1;

/**
 * What all figures of a run come to: `schemaVersion`, `date`, `revision` (with `dirty`, where git knows one), `machine`, and for each bench its
 * `path`, `exitCode` and `rows`.
 *
 * @param {readonly { path: string, exitCode: number, rows: readonly import('./bench-table.mjs').FigureRow[] }[]} benches
 */
export function makeReport(benches) {
  return { schemaVersion: SCHEMA_VERSION, date: new Date().toISOString(), ...revision(), machine: machine(), benches };
}

/**
 * Reads a saved report.
 *
 * @throws {CommandError} when it is none
 */
export function readReport(text, path) {
  let report;
  try {
    report = JSON.parse(text);
  } catch (cause) {
    throw new CommandError(`${path} is not JSON: ${cause.message}`);
  }
  if (report?.schemaVersion !== SCHEMA_VERSION) {
    throw new CommandError(
      `${path} is no report of version ${SCHEMA_VERSION}: its schemaVersion is ${JSON.stringify(report?.schemaVersion)}. Save one with bench --out FILE`,
    );
  }
  if (!Array.isArray(report.benches) || !report.benches.every(isBench)) {
    throw new CommandError(`${path} is damaged: its benches lack a path, or rows of name, metric and value`);
  }
  return report;
}

function isBench(bench) {
  return typeof bench?.path === 'string' && Array.isArray(bench.rows) && bench.rows.every(isRow);
}

function isRow(row) {
  return typeof row?.name === 'string' && typeof row.metric === 'string' && Number.isFinite(row.value);
}

/**
 * Holds the figures of two reports against each other: of the benches that ran now.
 *
 * @param {number} tolerance part by which a figure may be worse: 0.25 lets 100 ms become 125
 * @returns {{ path: string, name: string, metric: string, unit: string, before: number | null, now: number | null, ratio: number | null,
 *   verdict: 'same' | 'better' | 'worse' | 'new' | 'gone' | '-' }[]} `ratio` is now by before. `-`: a figure that is not judged
 */
export function compareReports(saved, now, tolerance) {
  return now.benches.flatMap(({ path, rows }) => {
    const before = numbered(saved.benches.find((each) => each.path === path)?.rows ?? []);
    const after = numbered(rows);
    const judged = [...after].map(([key, row]) => ({ path, ...judge(before.get(key), row, tolerance) }));
    const gone = [...before].filter(([key]) => !after.has(key)).map(([, row]) => ({ path, ...lost(row) }));
    return [...judged, ...gone];
  });
}

/** Rows by name and metric; the second of two that are called the same is another one. */
function numbered(rows) {
  const byKey = new Map();
  for (const row of rows) {
    let key = `${row.name}\n${row.metric}`;
    while (byKey.has(key)) key += '\n';
    byKey.set(key, row);
  }
  return byKey;
}

function judge(before, { name, metric, unit, value, better }, tolerance) {
  const figures = { name, metric, unit, before: before?.value ?? null, now: value };
  if (before === undefined) return { ...figures, ratio: null, verdict: 'new' };
  // Nothing is a multiple of nothing.
  const ratio = before.value === 0 ? (value === 0 ? 1 : null) : value / before.value;
  if (better === 'none' || ratio === null || ratio <= 0) return { ...figures, ratio, verdict: '-' };
  const loss = better === 'lower' ? ratio : 1 / ratio;
  return { ...figures, ratio, verdict: loss > 1 + tolerance ? 'worse' : loss < 1 / (1 + tolerance) ? 'better' : 'same' };
}

function lost({ name, metric, unit, value }) {
  return { name, metric, unit, before: value, now: null, ratio: null, verdict: 'gone' };
}

function machine() {
  const processors = cpus();
  const { platform, arch, versions } = process;
  return {
    platform,
    arch,
    cpu: processors[0]?.model ?? null,
    cores: processors.length,
    memoryBytes: totalmem(),
    node: versions.node,
  };
}

/** Null where the repository is no clone, or there is no git. */
function revision() {
  const git = (...args) => spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  const head = git('rev-parse', 'HEAD');
  if (head.status !== 0) return { revision: null, dirty: null };
  return { revision: head.stdout.trim(), dirty: git('status', '--porcelain').stdout !== '' };
}
