import { StreamDecoder } from '../../model/tokenizer.ts';
import { encodeUtf8 } from '../../model/utf8.ts';
import type { GgufMetadata } from '../metadata.ts';
import { mergePieces } from './merge-pieces.ts';
import type { TextTokenizer } from './text-tokenizer.ts';
import { failTokenizer, type GgufVocabulary, isNumber, listOf, TOKEN_TYPE } from './vocabulary.ts';

/** Stands for a space in the vocabulary. */
const SPACE_MARK = '\u2581';

/**
 * The tokenizer of a `llama` vocabulary: SentencePiece, whose pieces are merged in the order of their scores, with a token for
 * each byte of what no piece covers.
 */
export class SentencePieceTokenizer implements TextTokenizer {
  readonly vocabSize: number;
  readonly specialIds: ReadonlySet<number>;
  readonly #idByToken: ReadonlyMap<string, number>;
  readonly #bytesById: readonly Uint8Array[];
  readonly #byteIds: readonly number[];
  readonly #scores: readonly number[];
  /** Pieces that text may be merged into. */
  readonly #pieces: ReadonlyMap<string, number>;
  /** Matches the tokens that are found as they are written, the longest first. */
  readonly #written: RegExp | undefined;
  readonly #addsSpace: boolean;
  /** Ids of pieces that begin with a space which `encode` may have added. */
  readonly #spacedIds: ReadonlySet<number>;

  /** @throws {ModelError} `model-tokenizer` when scores or the token of a byte are missing */
  constructor(metadata: GgufMetadata, { tokens, types }: GgufVocabulary) {
    this.#scores = listOf(metadata, 'tokenizer.ggml.scores', isNumber);
    if (this.#scores.length !== tokens.length) failTokenizer(`has ${this.#scores.length} scores for ${tokens.length} tokens`);
    this.#addsSpace = metadata.get('tokenizer.ggml.add_space_prefix') !== false;
    const ids = tokens.map((_, id) => id);
    const ofType = (...wanted: number[]) => ids.filter((id) => wanted.includes(types[id]));
    this.vocabSize = tokens.length;
    this.specialIds = new Set(ofType(TOKEN_TYPE.control, TOKEN_TYPE.unknown));
    this.#idByToken = firstIds(tokens, ids);
    this.#pieces = firstIds(tokens, ofType(TOKEN_TYPE.normal));
    this.#spacedIds = new Set(ofType(TOKEN_TYPE.normal).filter((id) => tokens[id].startsWith(SPACE_MARK)));
    this.#byteIds = findBytes(firstIds(tokens, ofType(TOKEN_TYPE.byte)));
    this.#written = alternatives(ofType(TOKEN_TYPE.control, TOKEN_TYPE.userDefined).map((id) => tokens[id]));
    const byteById = new Map(this.#byteIds.map((id, byte) => [id, byte]));
    this.#bytesById = ids.map((id) => {
      const byte = byteById.get(id);
      if (byte !== undefined) return Uint8Array.of(byte);
      if (this.specialIds.has(id)) return new Uint8Array();
      return encodeUtf8(types[id] === TOKEN_TYPE.userDefined ? tokens[id] : tokens[id].replaceAll(SPACE_MARK, ' '));
    });
  }

  /** A space is added in front of the text, and behind each special token in it, unless the file says otherwise. */
  encode(text: string): Uint32Array {
    const ids: number[] = [];
    let addsSpace = this.#addsSpace;
    const parts = this.#written === undefined ? [text] : text.split(this.#written);
    parts.forEach((part, index) => {
      if (part === '') return;
      if (index % 2 === 1) {
        const id = this.#idByToken.get(part) as number;
        ids.push(id);
        addsSpace = this.#addsSpace && this.specialIds.has(id);
        return;
      }
      for (const id of this.#encodePart((addsSpace ? ' ' : '') + part)) ids.push(id);
      addsSpace = false;
    });
    return Uint32Array.from(ids);
  }

  /** The space that `encode` adds in front is taken away again. */
  decode(ids: ArrayLike<number>): string {
    const decoder = this.streamDecoder();
    let text = '';
    for (let i = 0; i < ids.length; i++) text += decoder.push(ids[i]);
    text += decoder.end();
    const first = Array.from(ids).find((id) => !this.specialIds.has(id));
    return this.#addsSpace && first !== undefined && this.#spacedIds.has(first) ? text.slice(1) : text;
  }

  /** An answer goes on behind a text, so its first space stays. */
  streamDecoder(): StreamDecoder {
    return new StreamDecoder(this.#bytesById);
  }

  bytesOf(id: number): Uint8Array | undefined {
    return this.#bytesById[id]?.slice();
  }

  idOf(token: string): number | undefined {
    return this.#idByToken.get(token);
  }

  *#encodePart(text: string): Generator<number> {
    for (const piece of mergePieces(text.replaceAll(' ', SPACE_MARK), (joined) => this.#scoreOf(joined))) {
      const id = this.#pieces.get(piece);
      if (id !== undefined) yield id;
      else for (const byte of encodeUtf8(piece)) yield this.#byteIds[byte];
    }
  }

  #scoreOf(piece: string): number | undefined {
    const id = this.#pieces.get(piece);
    return id === undefined ? undefined : this.#scores[id];
  }
}

/** Ids by text; of two tokens with one text the first. */
function firstIds(tokens: readonly string[], ids: readonly number[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const id of ids) if (!found.has(tokens[id])) found.set(tokens[id], id);
  return found;
}

/** Ids of `<0x00>` to `<0xFF>`. */
function findBytes(idByToken: ReadonlyMap<string, number>): readonly number[] {
  return Array.from({ length: 256 }, (_, byte) => {
    const token = `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`;
    return idByToken.get(token) ?? failTokenizer(`has no token for the byte ${byte}`);
  });
}

/** One expression for all texts, in one group; undefined for none. */
function alternatives(texts: readonly string[]): RegExp | undefined {
  const longestFirst = texts.filter((text) => text !== '').sort((a, b) => b.length - a.length);
  if (longestFirst.length === 0) return undefined;
  return new RegExp(`(${longestFirst.map((text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|')})`);
}
