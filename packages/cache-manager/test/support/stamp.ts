import type { MultimodalDigest, ReuseScope } from '../../src/index.ts';

/** Token of a test: an id, or a digest of 32 bytes. */
export type Token = number | MultimodalDigest;

/**
 * What a page must hold for one token: a digest of everything that decides the value a model would have there. Two words
 * of 32 bits, far too many to meet by chance in a test.
 */
export interface Stamp {
  readonly low: number;
  readonly high: number;
}

const START: Stamp = { low: 0x243f6a88, high: 0x85a308d3 };

/** The stamp of a scope before its first token. */
export function scopeStamp(scope: ReuseScope | undefined): Stamp {
  return withText(START, `lora ${scope?.loraId ?? 'none'}, salt ${scope?.salt ?? 'none'}`);
}

/** The stamp of a sequence that is one token longer. */
export function withToken(stamp: Stamp, token: Token): Stamp {
  if (typeof token === 'number') return withWord(withWord(stamp, 1), token);
  let longer = withWord(stamp, 2);
  for (const byte of token) longer = withWord(longer, byte);
  return longer;
}

export function withText(stamp: Stamp, text: string): Stamp {
  let longer = stamp;
  for (let i = 0; i < text.length; i++) longer = withWord(longer, text.charCodeAt(i));
  return longer;
}

/** One stamp out of two: of a token prefix, and of the buffer that it stands in. */
export function combined(a: Stamp, b: Stamp): Stamp {
  return withWord(withWord(a, b.low), b.high);
}

function withWord({ low, high }: Stamp, word: number): Stamp {
  const mixedLow = Math.imul(low ^ word ^ (high >>> 7), 0x9e3779b1);
  const mixedHigh = Math.imul(high ^ Math.imul(word, 0x85ebca6b) ^ (low << 5), 0xc2b2ae35);
  return { low: (mixedLow ^ (mixedLow >>> 15)) >>> 0, high: (mixedHigh ^ (mixedHigh >>> 13)) >>> 0 };
}
