import type { TextTokenizer } from '@bufferwise/hybrid-engine';

/** A token as people and programs read it. */
export interface ReadableToken {
  /** Its text; what is half a character is `bytes:` and its bytes in `\xNN`. */
  readonly token: string;
  readonly bytes: number[];
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function readableToken(tokenizer: TextTokenizer, id: number): ReadableToken {
  const bytes = [...(tokenizer.bytesOf(id) ?? [])];
  return { token: textOf(bytes), bytes };
}

function textOf(bytes: readonly number[]): string {
  try {
    return utf8.decode(Uint8Array.from(bytes));
  } catch {
    return `bytes:${bytes.map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}`;
  }
}

const LEAST = -9999;

/** JSON has no infinity: what cannot be is told as very unlikely. */
export function finite(logProbability: number): number {
  return Math.max(LEAST, logProbability);
}
