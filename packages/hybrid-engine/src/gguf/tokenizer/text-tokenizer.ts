import type { StreamDecoder } from '../../model/tokenizer.ts';

/** Turns text into token ids and back, whatever the vocabulary is built from. `Tokenizer` is one. */
export interface TextTokenizer {
  /** One more than the highest token id. */
  readonly vocabSize: number;
  /** Ids of tokens that mark something and stand for no text. */
  readonly specialIds: ReadonlySet<number>;
  /** The token ids of `text`, without added start or end tokens. A special token written out in the text becomes that token. */
  encode(text: string): Uint32Array;
  /**
   * The text of `ids`. Special tokens stand for none; bytes that are not UTF-8 become U+FFFD.
   *
   * @throws {ModelError} `model-input` for an id outside of the vocabulary
   */
  decode(ids: ArrayLike<number>): string;
  /** A decoder for one answer, token by token. */
  streamDecoder(): StreamDecoder;
  /** The bytes that a token stands for, none for a special one; undefined for an id outside of the vocabulary. */
  bytesOf(id: number): Uint8Array | undefined;
  /** The id of a vocabulary entry as it is written in the file, or undefined. */
  idOf(token: string): number | undefined;
}
