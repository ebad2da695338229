import { Tokenizer as HuggingFaceTokenizer } from '@huggingface/tokenizers';
import { BYTE_ALPHABET, bytesOfToken } from './byte-alphabet.ts';
import { ModelError } from './model-error.ts';
import { encodeUtf8, lenientUtf8Decoder } from './utf8.ts';

/** More than any vocabulary has, and small enough to keep a table of. */
const MAX_VOCABULARY = 2 ** 20;

export interface TokenizerOptions {
  /** The parsed `tokenizer_config.json`, where the model has one. */
  tokenizerConfig?: unknown;
  /** Rows of the model's embedding: a tokenizer that can produce a higher id is refused. */
  vocabSize?: number;
}

/** Turns text into token ids and back, for byte-level tokenizers: every byte sequence has an encoding. */
export class Tokenizer {
  /** One more than the highest token id. */
  readonly vocabSize: number;
  /** Ids of tokens that mark something and stand for no text. */
  readonly specialIds: ReadonlySet<number>;
  readonly #encoder: HuggingFaceTokenizer;
  readonly #vocabulary: Vocabulary;

  /**
   * @param tokenizerJson the parsed `tokenizer.json`, in the Hugging Face format
   * @throws {ModelError} `model-tokenizer` when it is broken, lacks the token of a byte, is not byte-level, or has ids
   *   beyond `vocabSize`
   */
  constructor(tokenizerJson: unknown, options: TokenizerOptions = {}) {
    this.#vocabulary = readVocabulary(tokenizerJson, options.vocabSize ?? MAX_VOCABULARY);
    this.specialIds = this.#vocabulary.specialIds;
    this.vocabSize = this.#vocabulary.bytesById.length;
    try {
      this.#encoder = new HuggingFaceTokenizer(tokenizerJson as object, (options.tokenizerConfig ?? {}) as object);
      this.#encoder.encode('a b');
    } catch (cause) {
      fail('cannot be used', cause);
    }
  }

  /** The token ids of `text`, without added start or end tokens. A special token written out in the text becomes that token. */
  encode(text: string): Uint32Array {
    return Uint32Array.from(this.#encoder.encode(text, { add_special_tokens: false }).ids);
  }

  /**
   * The text of `ids`. Special tokens stand for none; bytes that are not UTF-8 become U+FFFD.
   *
   * @throws {ModelError} `model-input` for an id outside of the vocabulary
   */
  decode(ids: ArrayLike<number>): string {
    const decoder = this.streamDecoder();
    let text = '';
    for (let i = 0; i < ids.length; i++) text += decoder.push(ids[i]);
    return text + decoder.end();
  }

  /** A decoder for one answer, token by token. */
  streamDecoder(): StreamDecoder {
    return new StreamDecoder(this.#vocabulary.bytesById);
  }

  /** The bytes that a token stands for, none for a special one; undefined for an id outside of the vocabulary. */
  bytesOf(id: number): Uint8Array | undefined {
    return this.#vocabulary.bytesById[id]?.slice();
  }

  /** The id of a vocabulary entry as it is written in `tokenizer.json` (`<|end|>`), or undefined. */
  idOf(token: string): number | undefined {
    return this.#vocabulary.idByToken.get(token);
  }
}

/** Decodes one answer while it grows. What it has given out never changes: half a character waits for its other half. */
export class StreamDecoder {
  readonly #bytesById: readonly (Uint8Array | undefined)[];
  readonly #utf8 = lenientUtf8Decoder();

  constructor(bytesById: readonly (Uint8Array | undefined)[]) {
    this.#bytesById = bytesById;
  }

  /**
   * The text that `id` completes; empty when it only adds a part of a character, or is a special token.
   *
   * @throws {ModelError} `model-input` for an id outside of the vocabulary
   */
  push(id: number): string {
    const bytes = this.#bytesById[id];
    if (bytes === undefined) {
      throw new ModelError('model-input', `Token id ${id} is not in the vocabulary of ${this.#bytesById.length} tokens.`);
    }
    return this.#utf8.decode(bytes, { stream: true });
  }

  /** What is left at the end of the answer: empty, or U+FFFD for a character that never became whole. */
  end(): string {
    return this.#utf8.decode();
  }
}

interface Vocabulary {
  idByToken: Map<string, number>;
  /** Empty for special tokens; undefined for ids that no token has. */
  bytesById: (Uint8Array | undefined)[];
  specialIds: Set<number>;
}

function fail(what: string, cause?: unknown): never {
  const reason = cause instanceof Error ? `: ${cause.message}` : '';
  const message = `tokenizer.json ${what}${reason}. Take the byte-level tokenizer that the model was trained with.`;
  throw new ModelError('model-tokenizer', message, { file: 'tokenizer.json', cause });
}

function readVocabulary(json: unknown, vocabSize: number): Vocabulary {
  if (!isRecord(json) || !isRecord(json.model)) fail('has no model');
  if (json.model.type !== 'BPE' || !isRecord(json.decoder) || json.decoder.type !== 'ByteLevel') {
    fail('is not a byte-level BPE: its model must be BPE and its decoder ByteLevel');
  }
  if (!isRecord(json.model.vocab) || !Array.isArray(json.model.merges)) fail('has no vocabulary or no merges');
  if (!Array.isArray(json.added_tokens)) fail('has no list of added tokens');

  const vocabulary: Vocabulary = { idByToken: new Map(), bytesById: [], specialIds: new Set() };
  const add = (token: string, id: unknown, bytes: Uint8Array | null): void => {
    if (!Number.isSafeInteger(id) || (id as number) < 0 || (id as number) >= vocabSize) {
      fail(`gives ${JSON.stringify(token)} the id ${JSON.stringify(id)}, and the model has the ids 0 to ${vocabSize - 1}`);
    }
    if (bytes === null) fail(`has the entry ${JSON.stringify(token)}, which does not stand for bytes`);
    vocabulary.idByToken.set(token, id as number);
    vocabulary.bytesById[id as number] = bytes;
  };
  const added = json.added_tokens.map(readAddedToken);
  const addedContents = new Set(added.map(({ content }) => content));
  for (const [token, id] of Object.entries(json.model.vocab)) if (!addedContents.has(token)) add(token, id, bytesOfToken(token));
  const taken = new Set(vocabulary.idByToken.values());
  if (taken.size !== vocabulary.idByToken.size) fail('gives two entries of its vocabulary the same id');
  for (const { content, id, special } of added) {
    if (taken.has(id as number)) fail(`gives ${JSON.stringify(content)} the id of another entry, ${id}`);
    add(content, id, special ? new Uint8Array() : encodeUtf8(content));
    taken.add(id as number);
    if (special) vocabulary.specialIds.add(id as number);
  }
  const missing = BYTE_ALPHABET.findIndex((character) => !vocabulary.idByToken.has(character));
  if (missing >= 0) fail(`has no token for the byte ${missing}`);
  return vocabulary;
}

function readAddedToken(token: unknown): { content: string; id: unknown; special: boolean } {
  if (!isRecord(token) || typeof token.content !== 'string' || token.content === '') fail('has an added token without content');
  return { content: token.content, id: token.id, special: token.special === true };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
