import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAdapter, KINDS } from './create-adapter/create-adapter.mjs';
import { cacheFolder, root } from './run/workspace.mjs';

let folder;

beforeAll(() => {
  mkdirSync(cacheFolder, { recursive: true });
  folder = mkdtempSync(join(cacheFolder, 'create-adapter-'));
  // As an install would leave it.
  const scope = join(folder, 'node_modules', '@bufferwise');
  mkdirSync(scope, { recursive: true });
  for (const name of ['adapter-kit', 'cache-manager', 'core-policy', 'scratch-allocator'])
    symlinkSync(join(root, 'packages', name), join(scope, name), 'junction');
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('a new plugin of each kind passes its suite and the compiler at once', () => {
  for (const kind of KINDS) createAdapter({ name: `my-${kind}`, kind, into: folder });
  const conditions = "['@bufferwise/source', 'module', 'node', 'development|production']";
  writeFileSync(
    join(folder, 'vitest.config.mjs'),
    `export default { resolve: { conditions: ${conditions} }, ssr: { resolve: { conditions: ${conditions} } }, test: { include: ['*/src/**/*.test.ts'], testTimeout: 120000 } };\n`,
  );
  run('vitest/vitest.mjs', ['run', '--root', folder, '--reporter', 'dot', '--reporter', 'json', '--outputFile', 'report.json']);
  const report = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8'));
  expect(report.testResults.length).toBe(KINDS.length);
  expect(report.numFailedTests).toBe(0);
  expect(report.numPassedTests).toBeGreaterThan(60);
  for (const kind of KINDS) run('typescript/bin/tsc', ['--noEmit', '-p', join(folder, `my-${kind}`)]);
}, 300_000);

test('a new plugin may use Node, runs its tests in its own folder, and is no part of a release', () => {
  const { folder: made, files } = createAdapter({ name: 'buildable', kind: 'page-store', into: folder });
  expect(files).toContain('vitest.config.mjs');
  expect(JSON.parse(readFileSync(join(made, 'package.json'), 'utf8')).private).toBe(true);
  writeFileSync(join(made, 'src', 'on-disk.ts'), "import { link } from 'node:fs/promises';\n\nexport const place = link;\n");
  run('typescript/bin/tsc', ['--noEmit', '-p', made]);
  run('vitest/vitest.mjs', ['run', '--root', made, '--reporter', 'dot']);
}, 300_000);

test.each([
  ['Tape', 'page-store', 'The name of a package'],
  [undefined, 'page-store', 'The name of a package'],
  ['tape', 'tape', 'There is no kind'],
  ['tape', undefined, 'There is no kind'],
])('the name %j with the kind %j is refused before anything is written', (name, kind, message) => {
  expect(() => createAdapter({ name, kind, into: join(folder, 'refused') })).toThrow(message);
  expect(existsSync(join(folder, 'refused'))).toBe(false);
});

test('a folder that is there is left alone', () => {
  createAdapter({ name: 'there', kind: 'transport', into: join(folder, 'twice') });
  expect(() => createAdapter({ name: 'there', kind: 'transport', into: join(folder, 'twice') })).toThrow('is there already');
});

function run(script, options) {
  try {
    return execFileSync(process.execPath, [join(root, 'node_modules', script), ...options], {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  } catch (error) {
    throw new Error(`${script} failed:\n${error.stdout}\n${error.stderr}`);
  }
}
