import { OnnxDecoderError } from '../errors.ts';

/**
 * Tokens in a form that nobody else can change.
 *
 * @param call      for the message
 * @param vocabSize tokens that the model knows; null where that is not known
 * @throws {OnnxDecoderError} `onnx-tokens` at the first that is none
 */
export function checkedTokens(call: string, tokens: ArrayLike<number>, vocabSize: number | null): Uint32Array {
  const below = vocabSize ?? 2 ** 32;
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i];
    if (Number.isInteger(token) && token >= 0 && token < below) continue;
    const message = `${call}: ${token} at position ${i} is no token of this model; those are whole numbers from 0 to ${below - 1}`;
    throw new OnnxDecoderError('onnx-tokens', message);
  }
  return Uint32Array.from(tokens);
}
