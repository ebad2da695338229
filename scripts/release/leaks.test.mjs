import { expect, test } from 'vitest';
import { unreleased } from './leaks.mjs';

const own = new Set(['@scope/a', '@scope/b', 'tool']);
const manifest = { version: '0.2.0', dependencies: { '@scope/b': '^0.2.0', other: '^1.0.0' }, peerDependencies: { gpu: '>=3' } };
const changelog = '# @scope/a\n\n## 0.2.0\n\n### Minor Changes\n\n- New.\n';
const said = (changes, log = changelog) =>
  unreleased({ name: '@scope/a', manifest: { ...manifest, ...changes }, changelog: log, own });

test('a package with its own version, real versions of others and a changelog can be released', () => {
  expect(said({})).toEqual([]);
});

test('versions of the workspace and of the catalog are found wherever they stand', () => {
  for (const version of ['workspace:^', 'catalog:', 'link:../b', 'file:../b.tgz']) {
    expect(said({ devDependencies: { x: version } })).toEqual([
      '@scope/a: its package.json has a version that only the workspace understands',
    ]);
  }
});

test('packages of a release ask for each other in the version of that release', () => {
  expect(said({ dependencies: { '@scope/b': '^0.1.0' } })).toEqual([
    '@scope/a asks for @scope/b ^0.1.0, which is not of its release: ^0.2.0',
  ]);
  expect(said({ peerDependencies: { tool: '0.2.0' } })).toHaveLength(1);
});

test('a package without a version, and one whose changelog does not tell of it, are no release', () => {
  expect(said({ version: '0.0.0', dependencies: {} })).toContain('@scope/a has no version: no changeset announces it');
  expect(said({}, '# @scope/a\n\n## 0.2.0-next\n\n## 0.1.0\n')).toEqual(['@scope/a: its changelog does not tell of 0.2.0']);
  expect(unreleased({ name: '@scope/a', manifest, changelog: undefined, own })).toEqual([
    '@scope/a: its changelog does not tell of 0.2.0',
  ]);
});
