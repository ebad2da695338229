import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { benchFlags } from './bench-flags.mjs';
import { compareReports, makeReport, readReport, SCHEMA_VERSION } from './bench-report.mjs';
import { figureRows } from './bench-table.mjs';
import { root, sourceFiles } from './workspace.mjs';

const row = (value, better = 'lower', name = 'a step') => ({ name, metric: 'time', value, unit: 'ms', better });
const report = (...rows) => ({
  schemaVersion: SCHEMA_VERSION,
  benches: [{ path: 'packages/a/bench/a.bench.ts', exitCode: 0, rows }],
});
const verdict = (before, now, better) => compareReports(report(row(before, better)), report(row(now, better)), 0.25)[0].verdict;

describe('figures of a bench', () => {
  it('are the columns that it says are figures; the others name the row', () => {
    const columns = { ms: { unit: 'ms', better: 'lower' }, ratio: { unit: 'x', better: 'higher' } };
    expect(figureRows([{ shape: '8 x 64', requests: 4, ms: 1.5, ratio: 2 }], columns)).toEqual([
      { name: 'shape 8 x 64, requests 4', metric: 'ms', value: 1.5, unit: 'ms', better: 'lower' },
      { name: 'shape 8 x 64, requests 4', metric: 'ratio', value: 2, unit: 'x', better: 'higher' },
    ]);
  });

  it('take the unit of their row, and leave out what is no number', () => {
    const columns = { measured: { unit: ({ unit }) => unit, better: 'lower' }, target: { unit: 'ns', better: 'none' } };
    expect(figureRows([{ figure: 'resize', measured: 40, unit: 'ns', target: '' }], columns)).toEqual([
      { name: 'resize', metric: 'measured', value: 40, unit: 'ns', better: 'lower' },
    ]);
  });
});

describe('a comparison', () => {
  it.each([
    ['lower', 100, 125, 'same'],
    ['lower', 100, 126, 'worse'],
    ['lower', 100, 80, 'same'],
    ['lower', 100, 79, 'better'],
    ['higher', 100, 80, 'same'],
    ['higher', 100, 79, 'worse'],
    ['higher', 100, 126, 'better'],
    ['none', 100, 1000, '-'],
    ['lower', 0, 0, 'same'],
    ['lower', 0, 3, '-'],
  ])('with better %s, of %d and then %d, says %s', (better, before, now, expected) => {
    expect(verdict(before, now, better)).toBe(expected);
  });

  it('names what is new and what is gone, of benches that ran, and tells equal names apart', () => {
    const saved = report(row(1), row(2), row(3, 'lower', 'gone'));
    saved.benches.push({ path: 'packages/b/bench/b.bench.ts', exitCode: 0, rows: [row(1)] });
    const lines = compareReports(saved, report(row(1), row(4), row(5, 'lower', 'new')), 0.25);
    expect(lines.map(({ name, ratio, verdict: each }) => [name, ratio, each])).toEqual([
      ['a step', 1, 'same'],
      ['a step', 2, 'worse'],
      ['new', null, 'new'],
      ['gone', null, 'gone'],
    ]);
  });
});

describe('a report', () => {
  it('says on what machine and from what source it is, and survives JSON', () => {
    const made = makeReport([{ path: 'packages/a/bench/a.bench.ts', exitCode: 0, rows: [row(1)] }]);
    expect(made).toMatchObject({ schemaVersion: 1, machine: { platform: process.platform, node: process.versions.node } });
    expect(made.machine.cores).toBeGreaterThan(0);
    expect(made.revision === null || /^[0-9a-f]{40,64}$/.test(made.revision)).toBe(true);
    expect(readReport(JSON.stringify(made), 'a.json')).toEqual(made);
  });

  it.each([
    ['no JSON', '{', /a.json is not JSON/],
    ['another version', '{"schemaVersion": 2}', /schemaVersion is 2/],
    ['nothing of the kind', 'null', /schemaVersion is undefined/],
    ['no benches', '{"schemaVersion": 1}', /is damaged/],
    ['rows that are none', '{"schemaVersion": 1, "benches": [{"path": "a", "rows": [{"name": "x"}]}]}', /is damaged/],
  ])('that is %s is refused', (_, text, message) => {
    expect(() => readReport(text, 'a.json')).toThrow(message);
  });
});

describe('flags', () => {
  it('stand anywhere, with = or without', () => {
    expect(benchFlags(['copy', '--json', '--out=a.json', 'index', '--compare', 'b.json', '--tolerance', '0.5'])).toEqual({
      names: ['copy', 'index'],
      json: true,
      out: 'a.json',
      compare: 'b.json',
      tolerance: 0.5,
    });
  });

  it.each([[['--fast']], [['--out']], [['--tolerance', 'x']], [['--tolerance=']], [['--json=1']]])('%j is refused', (args) => {
    expect(() => benchFlags(args)).toThrow(expect.objectContaining({ exitCode: 2 }));
  });
});

describe('every bench', () => {
  it.each(sourceFiles('packages', (path) => path.endsWith('.bench.ts')))('says which of its fields are figures: %s', (path) => {
    expect(readFileSync(join(root, path), 'utf8')).toMatch(/^export const columns = /m);
  });
});
