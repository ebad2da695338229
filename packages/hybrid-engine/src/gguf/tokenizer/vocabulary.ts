import { ModelError } from '../../model/model-error.ts';
import type { GgufMetadata, GgufValue } from '../metadata.ts';

/** What a token is for. @see ggml docs/gguf.md, `tokenizer.ggml.token_type` */
export const TOKEN_TYPE = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const;

/** The tokens of a file, by id. */
export interface GgufVocabulary {
  readonly tokens: readonly string[];
  /** One of `TOKEN_TYPE` each. */
  readonly types: readonly number[];
}

/** @throws {ModelError} `model-tokenizer` always */
export function failTokenizer(what: string, cause?: unknown): never {
  throw new ModelError('model-tokenizer', `The tokenizer of the GGUF file ${what}. Take another file of the model.`, { cause });
}

/** Reads tokens and what they are for; a file that does not say has normal ones only. */
export function readVocabulary(metadata: GgufMetadata, maxTokens: number): GgufVocabulary {
  const tokens = listOf(metadata, 'tokenizer.ggml.tokens', isText);
  if (tokens.length === 0 || tokens.length > maxTokens) {
    failTokenizer(`has ${tokens.length} tokens, and the model has the ids 0 to ${maxTokens - 1}`);
  }
  const types = metadata.has('tokenizer.ggml.token_type')
    ? listOf(metadata, 'tokenizer.ggml.token_type', isNumber)
    : tokens.map(() => TOKEN_TYPE.normal);
  if (types.length !== tokens.length) failTokenizer(`has ${types.length} types for ${tokens.length} tokens`);
  return { tokens, types };
}

/** A list of the metadata whose elements are all of one kind. */
export function listOf<T extends GgufValue>(
  metadata: GgufMetadata,
  key: string,
  is: (value: GgufValue) => value is T,
): readonly T[] {
  const list = metadata.get(key);
  if (!Array.isArray(list) || !list.every(is)) failTokenizer(`has no list of the right kind in ${key}`);
  return list;
}

export function isText(value: GgufValue): value is string {
  return typeof value === 'string';
}

export function isNumber(value: GgufValue): value is number {
  return typeof value === 'number';
}
