import { expect, it, vi } from 'vitest';
import { compileExamples } from './compile-examples.ts';
import { exampleFiles, programs } from './example-files.ts';

it('every example in every page compiles', () => {
  const files = exampleFiles('compiled', programs, 'compile');
  const found = compileExamples([...files.values()].map(({ path }) => path));
  const problems = [...files].flatMap(([{ place }, { path }]) =>
    (found.get(path) ?? []).map((problem) => `${place.replace(/:\d+$/, '')}:${problem}`),
  );
  expect(problems.join('\n')).toBe('');
}, 240_000);

const running = exampleFiles(
  'run',
  programs.filter(({ runs }) => runs === 'anywhere'),
  'run',
);

/** Examples that are compiled and not run, by page. Every one says why, beside it. */
const ONLY_COMPILED = {
  'apps/cli/README.md': 1,
  'docs/start/browser.md': 2,
  'docs/write-an-adapter.md': 1,
  'packages/adapter-connectors/README.md': 5,
  'packages/adapter-disaggregation/README.md': 3,
  'packages/adapter-kit/README.md': 1,
  'packages/adapter-legacy/README.md': 2,
  'packages/adapter-onnxruntime/README.md': 1,
  'packages/cache-manager/README.md': 1,
  'packages/gpu-kernels/README.md': 1,
  'packages/hybrid-engine/README.md': 1,
};

it('no example escapes being run unless this list says so', () => {
  const counts: Record<string, number> = {};
  for (const { place } of programs.filter(({ runs }) => runs === 'never')) {
    const page = place.replace(/:\d+$/, '');
    counts[page] = (counts[page] ?? 0) + 1;
  }
  expect(counts).toEqual(ONLY_COMPILED);
});

it('comments behind expressions are held to what comes out', () => {
  expect([...running.values()].reduce((sum, { stated }) => sum + stated, 0)).toBeGreaterThanOrEqual(46);
});

it.for([...running].map(([{ place }, file]) => ({ place, ...file })))('$place runs as it says', async ({ path }) => {
  vi.spyOn(console, 'log').mockImplementation(() => {});
  await import(path);
});
