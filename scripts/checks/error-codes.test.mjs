import { expect, test } from 'vitest';
import { codesOfPackages, codesOfPage, differences } from './error-codes.mjs';

const declared = (text, name = '@scope/a') => codesOfPackages([{ name, files: [{ path: 'a.ts', text }] }]);
const codes = (text) => [...declared(text).get('@scope/a').keys()];

const BASE = `class BaseError extends Error { constructor(code: string, message: string) { super(message); } }\n`;

test('what an error is thrown with is its code, when its constructor says so', () => {
  expect(codes(`${BASE} throw new BaseError('no-room', 'There is no room.');`)).toEqual(['no-room']);
  expect(codes(`${BASE} const refused = (empty) => new BaseError(empty ? 'is-empty' : 'is-full', '');`)).toEqual([
    'is-empty',
    'is-full',
  ]);
  expect(
    codes(`class OtherError extends Error { constructor(path: string) { super(path); } } throw new OtherError('some-path');`),
  ).toEqual([]);
});

test('a class that hands a code on has it', () => {
  expect(
    codes(`${BASE} class RoomError extends BaseError { constructor(left: number) { super('no-room', String(left)); } }`),
  ).toEqual(['no-room']);
  expect(codes(`class PathError extends Error { constructor() { super('no code'); } }`)).toEqual([]);
});

test('codes are found in types: in those called Code, and of whatever is called code', () => {
  expect(codes(`export type RoomErrorCode = Other | 'no-room' | 'no-door'; type Color = 'red';`)).toEqual(['no-room', 'no-door']);
  expect(codes(`class E { declare readonly code: 'no-room' | 'no-door'; readonly colour: 'red' | 'blue' = 'red'; }`)).toEqual([
    'no-room',
    'no-door',
  ]);
  expect(codes(`interface Fault { code: 'missing'; path: string }`)).toEqual(['missing']);
});

test('the page tells codes in the first cell of a row, below the name of the package', () => {
  const page =
    '# Errors\n\n| `no-where` |\n\n## @scope/a\n\n| code | when |\n| --- | --- |\n| `no-room`, `no-door` | `never` |\n\n## Other\n';
  expect(codesOfPage(page)).toEqual(new Map([['@scope/a', new Set(['no-room', 'no-door'])]]));
});

test('a code without a row and a row without a code are told, those of another package too', () => {
  const told = (...each) => new Map([['@scope/a', new Set(each)]]);
  const source = declared(`type RoomErrorCode = 'no-room'`);
  expect(differences(source, told('no-room'))).toEqual([]);
  expect(differences(source, told())).toEqual(['a.ts: `no-room` is missing in the section @scope/a']);
  expect(differences(source, new Map())).toHaveLength(1);
  expect(differences(source, told('no-room', 'no-door'))).toEqual([
    'docs/errors.md: `no-door` stands in the section @scope/a, which has no such code',
  ]);
  expect(differences(source, new Map([...told('no-room'), ['@scope/b', new Set(['no-room'])]]))).toHaveLength(1);
});

test('a code that is put together is told by each of the codes it gives', () => {
  const source = declared(`${BASE} throw new BaseError(\`resume-\${state.status}\`, '');`);
  expect([...source.get('@scope/a').keys()]).toEqual(['resume-*']);
  expect(differences(source, new Map([['@scope/a', new Set(['resume-active', 'resume-closed'])]]))).toEqual([]);
  expect(differences(source, new Map([['@scope/a', new Set(['resume'])]]))).toHaveLength(2);
});
