import type { GgufModel } from '../gguf-model.ts';
import { readByteLevelTokenizer } from './byte-level.ts';
import { SentencePieceTokenizer } from './sentence-piece.ts';
import type { TextTokenizer } from './text-tokenizer.ts';
import { failTokenizer, readVocabulary } from './vocabulary.ts';

/**
 * The tokenizer that a GGUF file brings: SentencePiece (`llama`) or byte-level BPE (`gpt2`). It adds no start token: whether a
 * model wants one stands in `tokenizer.ggml.add_bos_token` of the metadata, and its id in `tokenizer.ggml.bos_token_id`.
 *
 * @throws {ModelError} `model-tokenizer` when it is broken, of another kind, or has more tokens than the model
 */
export function readGgufTokenizer({ metadata, description }: Pick<GgufModel, 'metadata' | 'description'>): TextTokenizer {
  const vocabulary = readVocabulary(metadata, description.vocabSize);
  const kind = metadata.get('tokenizer.ggml.model');
  if (kind === 'llama') return new SentencePieceTokenizer(metadata, vocabulary);
  if (kind === 'gpt2') return readByteLevelTokenizer(metadata, vocabulary);
  return failTokenizer(`is of the kind ${String(kind)}, and llama and gpt2 are known`);
}
