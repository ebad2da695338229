import { expect, test } from 'vitest';
import { unwantedIn } from './contents.mjs';

const files = ['LICENSE', 'README.md', 'dist/index.d.ts', 'dist/index.js', 'package.json'];
const manifest = {
  exports: { '.': { types: './dist/index.d.ts', default: './dist/index.js' } },
  dependencies: { other: '^1.0.0' },
};

test('a package with its build, README, LICENSE and real versions is as it should be', () => {
  expect(unwantedIn({ files, manifest })).toEqual([]);
});

test('a missing LICENSE, a source file and a test are each named', () => {
  const odd = ['README.md', 'dist/index.d.ts', 'dist/index.js', 'dist/a.test.js', 'package.json', 'src/index.ts'];
  expect(unwantedIn({ files: odd, manifest })).toEqual([
    'LICENSE is missing',
    'src/index.ts does not belong in it',
    'dist/a.test.js is a test or a bench',
  ]);
});

test('an export without a file and the condition for the source are refused', () => {
  const exports = { '.': { '@bufferwise/source': './src/index.ts', default: './dist/index.js' } };
  expect(unwantedIn({ files, manifest: { ...manifest, exports } })).toEqual([
    'exports names src/index.ts, which is missing',
    'exports still has the condition for the source',
  ]);
});

test('a command without a file is refused', () => {
  const bin = { tool: './dist/tool.js' };
  expect(unwantedIn({ files: [...files, 'dist/tool.js'], manifest: { ...manifest, bin } })).toEqual([]);
  expect(unwantedIn({ files, manifest: { ...manifest, bin } })).toEqual(['bin names dist/tool.js, which is missing']);
});

test('versions that only this repository understands and private packages are refused', () => {
  expect(unwantedIn({ files, manifest: { ...manifest, dependencies: { other: 'workspace:^' } } })).toEqual([
    'a dependency has no real version',
  ]);
  expect(unwantedIn({ files, manifest: { ...manifest, dependencies: { '@bufferwise-internal/test-kit': '1.0.0' } } })).toEqual([
    'a dependency is private to this repository',
  ]);
});
