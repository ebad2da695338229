import type { GeneratedToken, TextTokenizer } from '@bufferwise/hybrid-engine';
import { StopMatcher } from './stop-matcher.ts';
import type { LikelyToken } from './top-tokens.ts';

/** A token of an answer, and where it stands in its text. */
export interface SpokenToken extends GeneratedToken {
  /** The most likely tokens in its place, best first; empty when they were not asked for. */
  readonly top: readonly LikelyToken[];
  /** Characters (UTF-16 units) of the answer before it. */
  readonly offset: number;
}

/** What was added to an answer: text that does not change any more, and the tokens that begin in it. */
export interface TextPiece {
  readonly text: string;
  readonly tokens: readonly SpokenToken[];
}

/**
 * Turns the tokens of one answer into text, piece by piece, up to a stop sequence. Half a character waits for its other half, and what
 * may be the beginning of a stop sequence waits until that is known. All pieces together are the same however they are read.
 */
export class AnswerText {
  readonly #decoder: ReturnType<TextTokenizer['streamDecoder']>;
  readonly #matcher: StopMatcher;
  /** Characters that were decoded, and characters that were given out. */
  #decoded = 0;
  #given = 0;
  #waiting: SpokenToken[] = [];

  constructor(tokenizer: TextTokenizer, stops: readonly string[]) {
    this.#decoder = tokenizer.streamDecoder();
    this.#matcher = new StopMatcher(stops);
  }

  /** Whether a stop sequence has ended the answer. */
  get stopped(): boolean {
    return this.#matcher.stopped;
  }

  push(token: GeneratedToken, top: readonly LikelyToken[]): TextPiece {
    this.#waiting.push({ ...token, top, offset: this.#decoded });
    const text = this.#decoder.push(token.token);
    this.#decoded += text.length;
    const certain = this.#give(this.#matcher.push(text));
    return { text: certain, tokens: this.#tokensBefore(this.#given) };
  }

  /** What is left at the end of an answer that no stop sequence has ended. */
  end(): TextPiece {
    const certain = this.#matcher.push(this.#decoder.end());
    const text = this.#give(this.stopped ? certain : certain + this.#matcher.end());
    return { text, tokens: this.stopped ? this.#tokensBefore(this.#given) : this.#waiting.splice(0) };
  }

  #give(text: string): string {
    this.#given += text.length;
    return text;
  }

  /** Tokens whose text begins before a character. Of an answer that was stopped those behind it are nobody's. */
  #tokensBefore(end: number): SpokenToken[] {
    const count = this.#waiting.findIndex(({ offset }) => offset >= end);
    return this.#waiting.splice(0, count < 0 ? this.#waiting.length : count);
  }
}
