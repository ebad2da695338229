import { expect, test } from 'vitest';
import { differences, said } from './said.mjs';

const ran = (output) => said(Promise.resolve({ code: 0, output }));

test('what a process says is its last line, whatever it told before', async () => {
  expect(await ran('a warning\n{"reused":100}\n')).toEqual({ reused: 100 });
});

test('a process that says nothing of the kind is shown with all that it said', async () => {
  expect(differences('a project', await ran('Error: Cannot find module\n    at x.js:1'), { reused: 100 })).toEqual([
    'a project says\nError: Cannot find module\n    at x.js:1\ninstead of\n{"reused":100}',
  ]);
});

test('only what is equal in every field is as it should be', () => {
  expect(differences('it', { a: [1, null] }, { a: [1, null] })).toEqual([]);
  expect(differences('it', { a: 1, b: 2 }, { a: 1 })).toHaveLength(1);
  expect(differences('it', { a: undefined }, {})).toHaveLength(1);
});
