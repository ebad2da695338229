import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StopMatcher } from './stop-matcher.ts';

/** All that a matcher gives out of a text in pieces. */
function read(pieces: readonly string[], stops: readonly string[]): { text: string; stopped: boolean } {
  const matcher = new StopMatcher(stops);
  let text = '';
  for (const piece of pieces) text += matcher.push(piece);
  return { text: matcher.stopped ? text : text + matcher.end(), stopped: matcher.stopped };
}

describe('a stop sequence', () => {
  it.each([
    ['in one piece', ['one. two'], ['. '], 'one', true],
    ['over two pieces', ['one.', ' two'], ['. '], 'one', true],
    ['over many pieces', [...'one STOP two'], ['STOP'], 'one ', true],
    ['that is the whole text', ['STOP'], ['STOP'], '', true],
    ['that never comes whole', ['one ST', 'O'], ['STOP'], 'one STO', false],
    ['behind a false beginning', ['aa', 'ab'], ['aab'], 'a', true],
    ['of several, complete first', ['abc'], ['abcd', 'bc'], 'a', true],
    ['of several that end together, the one that begins first', ['abc'], ['c', 'abc'], '', true],
    ['outside of the basic plane', ['so 😀', 'x'], ['😀x'], 'so ', true],
    ['of none', ['one'], [], 'one', false],
  ])('%s', (_, pieces, stops, text, stopped) => {
    expect(read(pieces, stops)).toEqual({ text, stopped });
  });

  it('is waited for no longer than it may still come', () => {
    const matcher = new StopMatcher(['STOP']);
    expect(matcher.push('one S')).toBe('one ');
    expect(matcher.push('T')).toBe('');
    expect(matcher.push('A')).toBe('STA');
  });

  it('ends a text at the same place, however the text is cut', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 30 });
    const stops = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 4 }), { maxLength: 4 });
    fc.assert(
      fc.property(text, stops, fc.array(fc.nat(30)), (whole, given, cuts) => {
        const borders = [0, ...cuts.map((cut) => Math.min(cut, whole.length)).sort((a, b) => a - b), whole.length];
        const pieces = borders.slice(1).map((end, i) => whole.slice(borders[i], end));
        expect(read(pieces, given)).toEqual(slowly(whole, given));
      }),
    );
  });
});

/** Looks behind each character whether a stop sequence ends there. */
function slowly(text: string, stops: readonly string[]): { text: string; stopped: boolean } {
  for (let end = 1; end <= text.length; end++) {
    const found = stops.filter((stop) => text.slice(0, end).endsWith(stop)).sort((a, b) => b.length - a.length)[0];
    if (found !== undefined) return { text: text.slice(0, end - found.length), stopped: true };
  }
  return { text, stopped: false };
}
