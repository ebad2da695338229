import { expect, test } from 'vitest';
import { namesIn, untoldPackages } from './changeset.mjs';

const released = { name: '@scope/a', folder: 'packages/a', version: '1.2.0', versionAtBase: '1.2.0' };
const untold = (one, changed, announced = []) => untoldPackages([one], changed, new Set(announced)).map(({ name }) => name);

test('a released package whose source changed needs a changeset', () => {
  expect(untold(released, ['packages/a/src/index.ts'])).toEqual(['@scope/a']);
  expect(untold(released, ['packages/a/src/index.ts'], ['@scope/a'])).toEqual([]);
});

test('tests, benches and other packages need none', () => {
  expect(
    untold(released, [
      'packages/a/src/x.test.ts',
      'packages/a/test/story.test.ts',
      'packages/a/bench/x.bench.ts',
      'packages/ab/src/x.ts',
    ]),
  ).toEqual([]);
});

test('a package whose version was raised has used its changeset up', () => {
  expect(untold({ ...released, version: '1.3.0' }, ['packages/a/src/index.ts'])).toEqual([]);
});

test('a package that was never released needs a changeset for its first release, changed or not', () => {
  const fresh = { ...released, version: '0.0.0', versionAtBase: undefined };
  expect(untold(fresh, [])).toEqual(['@scope/a']);
  expect(untold(fresh, [], ['@scope/a'])).toEqual([]);
});

test('a changeset announces the packages in its front matter, if it says anything', () => {
  expect(namesIn('---\n"@scope/a": minor\n\'@scope/b\': patch\n---\n\nWhat is new.\n')).toEqual(['@scope/a', '@scope/b']);
  expect(namesIn('---\n"@scope/a": minor\n---\n\n')).toEqual([]);
  expect(namesIn('no front matter')).toEqual([]);
});
