import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type TextColumn, textTable, wrapText } from './text-table.ts';

const names: TextColumn = { title: 'name', cells: ['a', 'bcdefg'], align: 'left' };
const numbers = (title: string): TextColumn => ({ title, cells: ['1', '22'], align: 'right' });

describe('textTable', () => {
  it('aligns words to the left and numbers to the right, and leaves no blanks at the end', () => {
    expect(textTable([names, numbers('n'), { title: 'note', cells: ['', 'x'], align: 'left' }], 80, '> ')).toEqual([
      '> name     n  note',
      '> a        1',
      '> bcdefg  22  x',
    ]);
  });

  it('wraps a last column of words', () => {
    const note: TextColumn = { title: 'note', cells: ['one two three four five', 'six'], align: 'left' };
    expect(textTable([names, note], 26)).toEqual(['name    note', 'a       one two three four', '        five', 'bcdefg  six']);
  });

  it('is cut into tables that all begin with the first column', () => {
    expect(textTable([names, numbers('one'), numbers('two'), numbers('three')], 16)).toEqual([
      'name    one  two',
      'a         1    1',
      'bcdefg   22   22',
      '',
      'name    three',
      'a           1',
      'bcdefg     22',
    ]);
  });

  it('never has a line that is too long, unless two columns alone are', () => {
    const cells = fc.array(fc.string({ unit: 'grapheme-ascii', maxLength: 9 }), { minLength: 2, maxLength: 2 });
    const columns = fc.array(fc.record({ title: fc.constant('t'), cells, align: fc.constantFrom('left', 'right') }), {
      minLength: 2,
      maxLength: 7,
    });
    fc.assert(
      fc.property(columns, fc.integer({ min: 22, max: 60 }), (some, width) => {
        for (const line of textTable(some as TextColumn[], width, '  ')) expect(line.length).toBeLessThanOrEqual(width);
      }),
    );
  });
});

it('wrapText cuts at spaces only, and never loses a word', () => {
  expect(wrapText('a bb ccc dddd', 6)).toEqual(['a bb', 'ccc', 'dddd']);
  expect(wrapText('extraordinary is one', 6)).toEqual(['extraordinary', 'is one']);
  expect(wrapText('', 6)).toEqual(['']);
});

it('wrapText keeps a number and its unit together', () => {
  expect(wrapText('at most 480 KiB or 12 B', 12)).toEqual(['at most', '480 KiB or', '12 B']);
  expect(wrapText('a 16 B', 3)).toEqual(['a', '16 B']);
  expect(wrapText('a Big Bite', 6)).toEqual(['a Big', 'Bite']);
});
