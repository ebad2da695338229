import { Tokenizer } from '../../model/tokenizer.ts';
import type { GgufMetadata } from '../metadata.ts';
import { failTokenizer, type GgufVocabulary, isText, listOf, TOKEN_TYPE } from './vocabulary.ts';

const GPT2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/** The Llama 3 expression with so many digits a token. */
const llama3 = (digits: string) =>
  "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" +
  `${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`;

/**
 * How a text is cut before tokens are merged, by `tokenizer.ggml.pre`: expressions one after the other.
 * @see the `tokenizer.json` of one model of each name: GPT-2, Llama 3, Qwen 2, SmolLM
 */
const CUTS: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['gpt-2', [GPT2]],
  ['olmo', [GPT2]],
  ['llama-bpe', [llama3('\\p{N}{1,3}')]],
  ['dbrx', [llama3('\\p{N}{1,3}')]],
  ['qwen2', [llama3('\\p{N}')]],
  ['smollm', ['\\p{N}', GPT2]],
  ['refact', ['\\p{N}', GPT2]],
]);

/** The tokenizer of a `gpt2` vocabulary: byte-level BPE, as a `tokenizer.json` would have it. */
export function readByteLevelTokenizer(metadata: GgufMetadata, { tokens, types }: GgufVocabulary): Tokenizer {
  const pre = metadata.get('tokenizer.ggml.pre') ?? 'gpt-2';
  const cuts = CUTS.get(pre);
  if (cuts === undefined) failTokenizer(`cuts text by "${String(pre)}", and ${[...CUTS.keys()].join(', ')} are known`);
  const isAdded = (id: number) => types[id] === TOKEN_TYPE.control || types[id] === TOKEN_TYPE.userDefined;
  const ids = tokens.map((_, id) => id);
  const split = (Regex: string) => ({ type: 'Split', pattern: { Regex }, behavior: 'Isolated', invert: false });
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false };
  const json = {
    version: '1.0',
    added_tokens: ids.filter(isAdded).map((id) => addedToken(id, tokens[id], types[id] === TOKEN_TYPE.control)),
    normalizer: null,
    pre_tokenizer: { type: 'Sequence', pretokenizers: [...cuts.map(split), byteLevel] },
    post_processor: null,
    decoder: byteLevel,
    model: {
      type: 'BPE',
      vocab: Object.fromEntries(ids.filter((id) => !isAdded(id)).map((id) => [tokens[id], id])),
      merges: listOf(metadata, 'tokenizer.ggml.merges', isText),
    },
  };
  try {
    return new Tokenizer(json, { vocabSize: tokens.length });
  } catch (cause) {
    return failTokenizer(`is no byte-level BPE: ${(cause as Error).message}`, cause);
  }
}

function addedToken(id: number, content: string, special: boolean): object {
  return { id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special };
}
