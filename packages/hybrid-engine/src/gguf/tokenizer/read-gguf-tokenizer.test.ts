import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ModelError } from '../../model/model-error.ts';
import { whalerFiles } from '../../model/testing/whaler-files.ts';
import { Tokenizer } from '../../model/tokenizer.ts';
import { type GgufModel, readGgufModel } from '../gguf-model.ts';
import type { GgufValue } from '../metadata.ts';
import { oracleFile } from '../testing/oracle-models.ts';
import { mergePieces } from './merge-pieces.ts';
import { readGgufTokenizer } from './read-gguf-tokenizer.ts';

type Metadata = Record<string, GgufValue | undefined>;

const { description } = readGgufModel(oracleFile('llama-103'));

function tokenizer(metadata: Metadata, vocabSize = 2 ** 20) {
  const entries = Object.entries(metadata).filter((entry): entry is [string, GgufValue] => entry[1] !== undefined);
  const model: Pick<GgufModel, 'metadata' | 'description'> = {
    metadata: new Map(entries),
    description: { ...description, vocabSize },
  };
  return readGgufTokenizer(model);
}

function codeOf(metadata: Metadata, vocabSize?: number): string {
  try {
    tokenizer(metadata, vocabSize);
  } catch (error) {
    expect(error).toBeInstanceOf(ModelError);
    return (error as ModelError).code;
  }
  return 'accepted';
}

/** `[text, score, type]`. */
const PIECES: [string, number, number][] = [
  ['<unk>', 0, 2],
  ['<s>', 0, 3],
  ['<end>', 0, 3],
  ...Array.from({ length: 256 }, (_, byte): [string, number, number] => [
    `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
    0,
    6,
  ]),
  ['  ', -1000, 4],
  ['\u2581', -10, 1],
  ['a', -11, 1],
  ['b', -12, 1],
  ['c', -13, 1],
  ['ab', -2, 1],
  ['bc', -1, 1],
  ['abc', -3, 1],
  ['\u2581a', -4, 1],
  ['\u2581abc', -5, 1],
];

const SPM: Metadata = {
  'tokenizer.ggml.model': 'llama',
  'tokenizer.ggml.tokens': PIECES.map(([text]) => text),
  'tokenizer.ggml.scores': PIECES.map(([, score]) => score),
  'tokenizer.ggml.token_type': PIECES.map(([, , type]) => type),
};

describe('a SentencePiece vocabulary', () => {
  const spm = tokenizer(SPM);
  const written = (text: string) => Array.from(spm.encode(text), (id) => PIECES[id][0]);

  it('is merged in the order of scores, behind an added space', () => {
    expect(written('abc')).toEqual(['\u2581abc']);
    expect(written('ab abc')).toEqual(['\u2581', 'ab', '\u2581abc']);
    expect(written('cab')).toEqual(['\u2581', 'c', 'ab']);
  });

  it('writes what no piece covers as bytes', () => {
    expect(written('aé')).toEqual(['\u2581a', '<0xC3>', '<0xA9>']);
    expect(spm.decode(spm.encode('aé'))).toBe('aé');
  });

  it('finds special and user-defined tokens as they are written, and special ones stand for no text', () => {
    expect(written('<s>a<end>')).toEqual(['<s>', '\u2581a', '<end>']);
    expect(written('a  b')).toEqual(['\u2581a', '  ', 'b']);
    expect(spm.decode(spm.encode('<s>a<end>'))).toBe('a');
    expect([...spm.specialIds]).toEqual([0, 1, 2]);
    expect(spm.idOf('<end>')).toBe(2);
    expect(spm.vocabSize).toBe(PIECES.length);
  });

  it('adds no space where the file says so, and an answer keeps its first space', () => {
    const bare = tokenizer({ ...SPM, 'tokenizer.ggml.add_space_prefix': false });
    expect(Array.from(bare.encode('abc'), (id) => PIECES[id][0])).toEqual(['abc']);
    expect(bare.decode(bare.encode(' a'))).toBe(' a');
    const decoder = spm.streamDecoder();
    expect([...spm.encode('a é')].map((id) => decoder.push(id)).join('|') + decoder.end()).toBe(' a| ||é');
  });

  it('gives back any text', () => {
    const characters = fc.constantFrom('a', 'b', 'c', ' ', '\n', 'é', '日', '😀', '<', 's', '>');
    fc.assert(
      fc.property(fc.array(characters, { maxLength: 40 }), (list) => {
        const text = list.join('');
        fc.pre(!text.includes('<s>'));
        expect(spm.decode(spm.encode(text))).toBe(text);
      }),
      { numRuns: 2000, examples: [[[' ', ' ', 'a']], [[' ']]] },
    );
    expect(() => spm.decode([PIECES.length])).toThrow(ModelError);
  });

  it('is what the oracle models have', () => {
    const oracle = readGgufTokenizer(readGgufModel(oracleFile('gemma3-101')));
    expect(oracle.vocabSize).toBe(320);
    expect(oracle.encode('é').slice(-2)).toEqual(Uint32Array.of(3 + 0xc3, 3 + 0xa9));
  });
});

it('merges like somebody who looks for the best pair each time', () => {
  const scores = new Map(PIECES.filter(([, , type]) => type === 1).map(([text, score]) => [text, score]));
  const slowly = (text: string): string[] => {
    const pieces = Array.from(text);
    for (;;) {
      const pairs = pieces.slice(1).map((piece, i) => scores.get(pieces[i] + piece) ?? Number.NEGATIVE_INFINITY);
      const best = pairs.length === 0 ? Number.NEGATIVE_INFINITY : Math.max(...pairs);
      if (best === Number.NEGATIVE_INFINITY) return pieces;
      const at = pairs.indexOf(best);
      pieces.splice(at, 2, pieces[at] + pieces[at + 1]);
    }
  };
  fc.assert(
    fc.property(fc.array(fc.constantFrom('a', 'b', 'c', '\u2581', 'x'), { maxLength: 30 }), (characters) => {
      const text = characters.join('');
      expect(mergePieces(text, (piece) => scores.get(piece))).toEqual(slowly(text));
    }),
  );
});

describe('a byte-level vocabulary', () => {
  const json = JSON.parse(new TextDecoder().decode(whalerFiles().tokenizer));
  const tokens: string[] = [];
  for (const [token, id] of Object.entries(json.model.vocab)) tokens[id as number] = token;
  for (const { id, content } of json.added_tokens) tokens[id] = content;
  const special = new Set(json.added_tokens.map(({ id }: { id: number }) => id));
  const BPE: Metadata = {
    'tokenizer.ggml.model': 'gpt2',
    'tokenizer.ggml.pre': 'gpt-2',
    'tokenizer.ggml.tokens': tokens,
    'tokenizer.ggml.token_type': tokens.map((_, id) => (special.has(id) ? 3 : 1)),
    'tokenizer.ggml.merges': json.model.merges.map((merge: string | string[]) =>
      Array.isArray(merge) ? merge.join(' ') : merge,
    ),
  };

  it('encodes as the same tokenizer in a tokenizer.json does', () => {
    const expected = new Tokenizer(json);
    const found = tokenizer(BPE);
    for (const text of ['Call me Ishmael.', "it's 1851,  and\n\nso: naïve 日本 😀 <|end|> on"]) {
      expect(found.encode(text)).toEqual(expected.encode(text));
      expect(found.decode(found.encode(text))).toBe(expected.decode(expected.encode(text)));
    }
    expect(found.specialIds).toEqual(expected.specialIds);
  });

  it.each(['olmo', 'llama-bpe', 'dbrx', 'qwen2', 'smollm', 'refact'])('cut by %s gives back any text', (pre) => {
    const found = tokenizer({ ...BPE, 'tokenizer.ggml.pre': pre });
    for (const text of ["I'LL see 12345 of\r\n\n them,  naïve 日本 😀"]) expect(found.decode(found.encode(text))).toBe(text);
  });

  it.each<[string, Metadata]>([
    ['cut in an unknown way', { 'tokenizer.ggml.pre': 'toString' }],
    ['without merges', { 'tokenizer.ggml.merges': undefined }],
    ['without the token of a byte', { 'tokenizer.ggml.tokens': tokens.map((token) => (token === 'a' ? 'aaaaaaa' : token)) }],
  ])('is refused %s', (_, changes) => {
    expect(codeOf({ ...BPE, ...changes })).toBe('model-tokenizer');
  });
});

describe('a tokenizer is refused', () => {
  it.each<[string, Metadata, number?]>([
    ['of another kind', { 'tokenizer.ggml.model': 'bert' }],
    ['without tokens', { 'tokenizer.ggml.tokens': undefined }],
    ['with tokens that are numbers', { 'tokenizer.ggml.tokens': [1, 2] }],
    ['with no tokens at all', { 'tokenizer.ggml.tokens': [] }],
    ['with more tokens than the model has', {}, PIECES.length - 1],
    ['with too few types', { 'tokenizer.ggml.token_type': [1] }],
    ['with too few scores', { 'tokenizer.ggml.scores': [1] }],
    ['without the tokens of bytes', { 'tokenizer.ggml.token_type': undefined }],
  ])('%s', (_, changes, vocabSize) => {
    expect(codeOf({ ...SPM, ...changes }, vocabSize)).toBe('model-tokenizer');
  });

  it('and taken when it fits', () => {
    expect(codeOf(SPM, PIECES.length)).toBe('accepted');
  });
});
