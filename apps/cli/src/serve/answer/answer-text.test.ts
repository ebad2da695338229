import { readFileSync } from 'node:fs';
import { Tokenizer } from '@bufferwise/hybrid-engine';
import { describe, expect, it } from 'vitest';
import { AnswerText, type TextPiece } from './answer-text.ts';

const json = readFileSync(new URL('../../../../../models/whaler-1m/tokenizer.json', import.meta.url), 'utf8');
const tokenizer = new Tokenizer(JSON.parse(json));

/** All pieces of an answer, up to where it stops. */
function read(text: string, stops: readonly string[] = []): { pieces: TextPiece[]; stopped: boolean } {
  const answer = new AnswerText(tokenizer, stops);
  const pieces: TextPiece[] = [];
  for (const token of tokenizer.encode(text)) {
    pieces.push(answer.push({ token, logProbability: -1 }, []));
    if (answer.stopped) return { pieces, stopped: true };
  }
  pieces.push(answer.end());
  return { pieces, stopped: answer.stopped };
}

const textOf = (pieces: readonly TextPiece[]) => pieces.map(({ text }) => text).join('');
const tokensOf = (pieces: readonly TextPiece[]) => pieces.flatMap(({ tokens }) => tokens);

describe('the text of an answer', () => {
  const text = 'Call me Ishmael 😀, some years ago';

  it('comes whole, with every token once and where it stands', () => {
    const { pieces, stopped } = read(text);
    expect([textOf(pieces), stopped]).toEqual([text, false]);
    const tokens = tokensOf(pieces);
    expect(tokens.map(({ token }) => token)).toEqual([...tokenizer.encode(text)]);
    // A whole character in front of each; those that are a part of one stand where it begins.
    for (const { offset, token } of tokens) {
      const own = tokenizer.decode([token]);
      expect(own.includes('\ufffd') ? text.slice(offset, offset + 2) : text.slice(offset, offset + own.length)).toBe(
        own.includes('\ufffd') ? '😀' : own,
      );
    }
  });

  it('never has half a character', () => {
    expect(read(text).pieces.filter(({ text: piece }) => piece.includes('\ufffd'))).toEqual([]);
    expect(textOf(read(text).pieces.slice(0, 1))).toBe(tokenizer.decode(tokenizer.encode(text).subarray(0, 1)));
  });

  it('ends with what is left of a character that never became whole', () => {
    const answer = new AnswerText(tokenizer, []);
    const [first] = tokenizer.encode('😀');
    expect(answer.push({ token: first, logProbability: 0 }, [])).toEqual({ text: '', tokens: [] });
    expect(answer.end()).toMatchObject({ text: '\ufffd', tokens: [{ token: first, offset: 0 }] });
  });

  it.each([
    ['inside of a token', 'shma', 'Call me I'],
    ['over several tokens', 'l me Ishmael 😀, s', 'Cal'],
    ['at the beginning', 'C', ''],
    ['a character of several tokens', '😀', 'Call me Ishmael '],
  ])('ends before a stop sequence %s', (_, stop, before) => {
    const { pieces, stopped } = read(text, [stop]);
    expect([textOf(pieces), stopped]).toEqual([before, true]);
    // Those that begin behind the end are nobody's.
    expect(Math.max(-1, ...tokensOf(pieces).map(({ offset }) => offset))).toBeLessThan(Math.max(before.length, 1));
  });

  it('may stop with its very end', () => {
    const answer = new AnswerText(tokenizer, ['\ufffd']);
    answer.push({ token: tokenizer.encode('😀')[0], logProbability: 0 }, []);
    expect(answer.end()).toEqual({ text: '', tokens: [] });
    expect(answer.stopped).toBe(true);
  });
});
