import { expect, test } from 'vitest';
import { kernelText } from './kernel-text.ts';

test('constants stand in front of the text, numbers as u32', () => {
  expect(kernelText({ ROWS: 2, CAPPED: false }, 'a', 'b')).toBe('const ROWS = 2u;\nconst CAPPED = false;\na\nb');
});

test('a marked loop is written out, its index a literal', () => {
  const text = ['  for (var i = 0u; i < ROWS; i++) { // unroll', '    at[i] = index(i);', '  }', '  end', ''].join('\n');
  const copy = (i: string) => ['  {', `    at[${i}] = index(${i});`, '  }', ''].join('\n');
  expect(kernelText({ ROWS: 2 }, text)).toBe(`const ROWS = 2u;\n${copy('0u')}${copy('1u')}  end\n`);
});

test('marked loops may lie in each other, around other loops, and behind one another', () => {
  const text = [
    'for (var r = 0u; r < ROWS; r++) { // unroll',
    '  for (var k = 0u; k < n; k++) {',
    '    for (var c = 0u; c < VECS; c++) { // unroll',
    '      r c k',
    '    }',
    '  }',
    '}',
    'for (var c = 0u; c < VECS; c++) { // unroll',
    '  c',
    '}',
    '',
  ].join('\n');
  const written = kernelText({ ROWS: 2, VECS: 3 }, text);
  expect(written).not.toContain('unroll');
  expect(written.match(/\du \du k/g)).toEqual(['0u 0u k', '0u 1u k', '0u 2u k', '1u 0u k', '1u 1u k', '1u 2u k']);
  expect(written.match(/^ {2}\du$/gm)).toEqual(['  0u', '  1u', '  2u']);
  expect(written.match(/k < n/g)).toHaveLength(2);
});

test('a loop marked once too often is refused', () => {
  expect(() => kernelText({}, 'for (var i = 0u; i < ROWS; i++) { // unroll\n}\n')).toThrow('cannot unroll');
  expect(() => kernelText({ ROWS: true }, 'for (var i = 0u; i < ROWS; i++) { // unroll\n}\n')).toThrow('cannot unroll');
  expect(() => kernelText({ ROWS: 1 }, 'for (var i = 1u; i < ROWS; i++) { // unroll\n}\n')).toThrow('cannot unroll');
});
