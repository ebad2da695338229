import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { benchFlags } from './bench-flags.mjs';
import { compareReports, makeReport, readReport } from './bench-report.mjs';
import { dependencies } from './dependencies.mjs';
import { CommandError, run } from './process.mjs';
import { softwareGpu } from './software-gpu.mjs';
import { importSource, sourceModule } from './source-module.mjs';
import { failure, progress, say, strong } from './terminal.mjs';
import { sourceFiles } from './workspace.mjs';

/** Where a bench leaves its figures for the report. */
const ROWS_FILE = 'BUFFERWISE_BENCH_ROWS';

/** The benchmarks whose path contains one of the names, each in a process of its own; see `BENCH_USAGE`. */
export async function bench(args) {
  const { names, json, out, compare, tolerance } = benchFlags(args);
  const chosen = chosenBenches(names);
  // Before anything runs for minutes.
  const saved = compare === undefined ? undefined : readReport(readText(compare), compare);

  const { step, announce } = json ? SILENT : progress(2 + chosen.length);
  await step('dependencies', dependencies);
  const env = await step('software GPU', softwareGpu);
  const benches = [];
  for (const path of chosen) {
    announce(path);
    benches.push(await runBench(path, env, json));
  }
  const report = makeReport(benches);
  const lines = saved === undefined ? undefined : compareReports(saved, report, tolerance);
  if (out !== undefined) writeText(out, `${JSON.stringify(report, null, 2)}\n`);
  if (json) say(JSON.stringify(lines === undefined ? report : { ...report, comparison: { with: compare, tolerance, lines } }));
  else if (lines !== undefined) await showComparison(lines, tolerance);
  const isWorse = lines?.some(({ verdict }) => verdict === 'worse') ?? false;
  return Math.max(isWorse ? 1 : 0, ...benches.map(({ exitCode }) => exitCode));
}

/** Paths of benches, at least one. */
function chosenBenches(names) {
  const all = sourceFiles('packages', (path) => /^packages\/[^/]+\/bench\/.*\.bench\.ts$/.test(path));
  const chosen = names.length === 0 ? all : all.filter((path) => names.some((name) => path.includes(name)));
  if (chosen.length > 0) return chosen;
  throw new CommandError(
    `No benchmark matches ${names.join(' or ')}. There are:\n${all.map((path) => `  ${path}`).join('\n') || '  none'}`,
  );
}

/** What it prints is kept back with `quiet`, and shown on the standard error only where it fails. */
async function runBench(path, env, quiet) {
  const folder = mkdtempSync(join(tmpdir(), 'bufferwise-bench-'));
  const file = join(folder, 'rows.json');
  try {
    const options = { env: { ...env, [ROWS_FILE]: file }, capture: quiet };
    const { code, output } = await run(process.execPath, ['--expose-gc', await runnable(path)], options);
    if (code !== 0 && quiet) process.stderr.write(output);
    return { path, exitCode: code, rows: code === 0 ? JSON.parse(readText(file)) : [] };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runnable(path) {
  const [part, name, ...rest] = path.split('/');
  const code = [
    `import { writeFileSync } from 'node:fs';`,
    `import bench, { columns } from './${rest.join('/')}';`,
    `import { figureRows, showFigures } from '../../scripts/run/bench-table.mjs';`,
    'const rows = await bench();',
    'showFigures(rows);',
    `const file = process.env.${ROWS_FILE};`,
    'if (file !== undefined) writeFileSync(file, JSON.stringify(figureRows(rows, columns)));',
  ];
  return sourceModule(`${part}/${name}`, rest.join('-'), code.join('\n'));
}

async function showComparison(lines, tolerance) {
  const { textTable } = await importSource('packages/scratch-allocator', 'src/explain/text-table.ts');
  const number = (value) => (value === null ? '-' : `${Number(value.toPrecision(4))}`);
  const column = (title, align, cell) => ({ title, align, cells: lines.map(cell) });
  const table = textTable(
    [
      column('verdict', 'left', ({ verdict }) => verdict),
      column('before', 'right', ({ before }) => number(before)),
      column('now', 'right', ({ now }) => number(now)),
      column('unit', 'left', ({ unit }) => unit),
      column('ratio', 'right', ({ ratio }) => (ratio === null ? '-' : ratio.toFixed(2))),
      column(
        'figure',
        'left',
        ({ path, name, metric }) => `${path.split('/').pop().replace('.bench.ts', '')}: ${name}, ${metric}`,
      ),
    ],
    Math.max(60, process.stdout.columns || Number(process.env.COLUMNS) || 100),
  );
  const worse = lines.filter(({ verdict }) => verdict === 'worse').length;
  const words = `${worse} of ${lines.length} figures are worse by more than ${(100 * tolerance).toFixed(0)} %`;
  say(`\n${strong('Against the saved report')}\n${table.join('\n')}\n\n${worse > 0 ? failure(words) : words}`);
}

const SILENT = { step: async (_, work) => (await work()).value, announce: () => {} };

function readText(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new CommandError(`Cannot read ${path}: ${cause.code ?? cause.message}`);
  }
}

function writeText(path, text) {
  try {
    writeFileSync(path, text);
  } catch (cause) {
    throw new CommandError(`Cannot write ${path}: ${cause.code ?? cause.message}`);
  }
}
