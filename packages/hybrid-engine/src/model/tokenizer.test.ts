import { Tokenizer as HuggingFaceTokenizer } from '@huggingface/tokenizers';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BYTE_ALPHABET } from './byte-alphabet.ts';
import { ModelError } from './model-error.ts';
import { present } from './testing/present.ts';
import { whalerAnswers, whalerFiles } from './testing/whaler-files.ts';
import { Tokenizer } from './tokenizer.ts';
import { decodeUtf8, encodeUtf8 } from './utf8.ts';

const json = JSON.parse(decodeUtf8(whalerFiles().tokenizer));
const tokenizer = new Tokenizer(json, { vocabSize: 1024 });

describe('the tokenizer of the demo model', () => {
  it.each(whalerAnswers())(
    'encodes and decodes the prompt "$name" as the model learned it',
    ({ text, ids, greedy, greedyText }) => {
      expect([...tokenizer.encode(text)]).toEqual(ids);
      expect(tokenizer.decode(ids)).toBe(text);
      expect(tokenizer.decode(greedy)).toBe(greedyText);
    },
  );

  it('knows its special token, which stands for no text', () => {
    expect(tokenizer.idOf('<|end|>')).toBe(0);
    expect([...tokenizer.specialIds]).toEqual([0]);
    expect([...tokenizer.encode('a<|end|>b')]).toEqual([65, 0, 66]);
    expect(tokenizer.decode([65, 0, 66])).toBe('ab');
  });

  it('takes empty text for no tokens and back', () => {
    expect(tokenizer.encode('')).toEqual(new Uint32Array());
    expect(tokenizer.decode([])).toBe('');
  });

  it('brings every text back', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (text) => {
        fc.pre(!text.includes('<|end|>'));
        expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
      }),
    );
  });

  it('decodes any tokens as the tokenizer library does', () => {
    const library = new HuggingFaceTokenizer(json, {});
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 1023 }), { minLength: 1, maxLength: 40 }), (ids) => {
        expect(tokenizer.decode(ids)).toBe(library.decode(ids, { clean_up_tokenization_spaces: false }));
      }),
    );
  });

  it('refuses ids outside of its vocabulary', () => {
    for (const id of [1024, -1, 0.5]) expect(() => tokenizer.decode([id])).toThrow(ModelError);
  });
});

describe('a stream decoder', () => {
  const idOfByte = (byte: number) => present(tokenizer.idOf(BYTE_ALPHABET[byte]));

  it('holds the first half of a character back until the second comes', () => {
    const bytes = [...encodeUtf8('é€😀')];
    const decoder = tokenizer.streamDecoder();
    expect(bytes.map((byte) => decoder.push(idOfByte(byte)))).toEqual(['', 'é', '', '', '€', '', '', '', '😀']);
    expect(decoder.end()).toBe('');
  });

  it('gives out in pieces exactly what decoding at once gives', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 1023 }), { maxLength: 60 }), (ids) => {
        const decoder = tokenizer.streamDecoder();
        expect(ids.map((id) => decoder.push(id)).join('') + decoder.end()).toBe(tokenizer.decode(ids));
      }),
    );
  });

  it('ends a character that never became whole with a replacement', () => {
    const decoder = tokenizer.streamDecoder();
    expect(decoder.push(idOfByte(0xc3))).toBe('');
    expect(decoder.push(idOfByte(0x61))).toBe('\uFFFDa');
    expect(decoder.push(idOfByte(0xc3))).toBe('');
    expect(decoder.end()).toBe('\uFFFD');
  });
});

describe('a tokenizer file is refused', () => {
  const model = json.model;
  const vocabWithout = (token: string) => Object.fromEntries(Object.entries(model.vocab).filter(([key]) => key !== token));

  it.each<[string, unknown]>([
    ['that is no object', 'BPE'],
    ['without a model', { ...json, model: undefined }],
    ['of another kind of model', { ...json, model: { ...model, type: 'Unigram' } }],
    ['that does not decode bytes', { ...json, decoder: { type: 'Metaspace' } }],
    ['without a vocabulary', { ...json, model: { ...model, vocab: undefined } }],
    ['without merges', { ...json, model: { ...model, merges: undefined } }],
    ['without added tokens', { ...json, added_tokens: undefined }],
    ['with an added token without content', { ...json, added_tokens: [{ id: 0 }] }],
    ['with an added token on the id of another', { ...json, added_tokens: [{ id: 5, content: '<|pad|>', special: true }] }],
    ['without the token of a byte', { ...json, model: { ...model, vocab: vocabWithout('Ġ') } }],
    ['with an entry that is no bytes', { ...json, model: { ...model, vocab: { ...vocabWithout('med'), 海: model.vocab.med } } }],
    ['with two entries of one id', { ...json, model: { ...model, vocab: { ...model.vocab, med: 1 } } }],
    ['with an id beyond the embedding', { ...json, model: { ...model, vocab: { ...model.vocab, med: 1024 } } }],
    ['with an id that is no number', { ...json, model: { ...model, vocab: { ...model.vocab, med: '5' } } }],
    ['with an unknown pre-tokenizer', { ...json, pre_tokenizer: { type: 'Nonsense' } }],
    ['with a merge that is a number', { ...json, model: { ...model, merges: [7] } }],
  ])('%s', (_, broken) => {
    let error: unknown;
    try {
      new Tokenizer(broken, { vocabSize: 1024 });
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(ModelError);
    expect(error).toMatchObject({ code: 'model-tokenizer', file: 'tokenizer.json' });
  });
});
