import { describe, expect, it } from 'vitest';
import { type ModelFiles, readModel } from './model.ts';
import { ModelError } from './model-error.ts';
import { whalerFiles } from './testing/whaler-files.ts';
import { decodeUtf8, encodeUtf8 } from './utf8.ts';

const files = whalerFiles();

function faultOf(changes: Partial<ModelFiles>): ModelError {
  try {
    readModel({ ...files, ...changes });
  } catch (error) {
    expect(error).toBeInstanceOf(ModelError);
    return error as ModelError;
  }
  throw new Error('the files were accepted');
}

const changedConfig = (changes: object) => encodeUtf8(JSON.stringify({ ...JSON.parse(decodeUtf8(files.config)), ...changes }));

describe('the files of a model', () => {
  it('make a model when they are sound and fit each other', () => {
    const model = readModel(files);
    expect(model.config.name).toBe('whaler-1m');
    expect(model.tokenizer.vocabSize).toBe(model.config.vocabSize);
  });

  it.each<[string, Partial<ModelFiles>, string, string]>([
    ['a config that is not JSON', { config: encodeUtf8('{') }, 'model-file', 'config.json'],
    ['a tokenizer that is not UTF-8', { tokenizer: Uint8Array.of(0xff) }, 'model-file', 'tokenizer.json'],
    ['a config of another kind', { config: encodeUtf8('{}') }, 'model-config', 'config.json'],
    ['a broken tokenizer', { tokenizer: encodeUtf8('{}') }, 'model-tokenizer', 'tokenizer.json'],
    ['truncated weights', { weights: files.weights.subarray(0, 100_000) }, 'safetensors-truncated', 'model.safetensors'],
    [
      'a config that does not fit the weights',
      { config: changedConfig({ mlp_hidden: 512 }) },
      'model-weights',
      'model.safetensors',
    ],
    [
      'a vocabulary larger than the embedding',
      { config: changedConfig({ vocab_size: 1000 }) },
      'model-tokenizer',
      'tokenizer.json',
    ],
  ])('are refused for %s, and the error names the file', (_, changes, code, file) => {
    const error = faultOf(changes);
    expect(error).toMatchObject({ code, file });
    expect(error.message).toContain(file);
  });

  it('are refused with all faults of the file', () => {
    expect(faultOf({ config: changedConfig({ mlp_hidden: 512 }) }).faults).toHaveLength(18);
  });
});
