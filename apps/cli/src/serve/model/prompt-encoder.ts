import type { TextTokenizer } from '@bufferwise/hybrid-engine';
import { badField } from '../http/api-error.ts';
import type { ServedModel } from './served-model.ts';

/** A text as a prompt: with the token in front that the model wants there, unless it is there already. */
export function promptEncoder({ engineModel, startToken }: ServedModel): TextTokenizer['encode'] {
  const { tokenizer } = engineModel;
  return (text) => {
    const ids = tokenizer.encode(text);
    return startToken === null || ids[0] === startToken ? ids : withFront(startToken, ids);
  };
}

/**
 * Checks tokens that a client made itself.
 *
 * @throws {ApiError} 400
 */
export function checkedTokens({ engineModel }: ServedModel, ids: readonly number[], param: string): Uint32Array {
  const { vocabSize } = engineModel.description;
  const wrong = ids.findIndex((id) => id >= vocabSize);
  if (wrong < 0) return Uint32Array.from(ids);
  throw badField(`${param}[${wrong}]`, `is ${ids[wrong]}; this model has tokens 0 to ${vocabSize - 1}`, 'invalid_prompt');
}

function withFront(first: number, rest: Uint32Array): Uint32Array {
  const all = new Uint32Array(1 + rest.length);
  all[0] = first;
  all.set(rest, 1);
  return all;
}
