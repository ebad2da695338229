import { describe, expect, it } from 'vitest';
import type { AttentionDescription } from '../description/attention.ts';
import { describeTensors } from '../description/describe-tensors.ts';
import { ModelError } from '../model/model-error.ts';
import { ReferenceModel } from '../reference/reference-model.ts';
import { dequantiseAll, type GgufModel, readGgufModel } from './gguf-model.ts';
import { buildGguf, type TensorToWrite, type TypedValue } from './testing/gguf-builder.ts';
import { ORACLE_MODELS, type OracleModel, oracleFile } from './testing/oracle-models.ts';

type Metadata = Record<string, TypedValue>;

const U32 = 4;
const F32 = 6;
const FLAG = 7;
const TEXT = 8;
const LIST = 9;

/** A llama of one layer: 8 wide, 2 heads that share one of keys and values. */
const LLAMA: Metadata = {
  'general.architecture': [TEXT, 'llama'],
  'llama.context_length': [U32, 64],
  'llama.embedding_length': [U32, 8],
  'llama.block_count': [U32, 1],
  'llama.feed_forward_length': [U32, 12],
  'llama.attention.head_count': [U32, 2],
  'llama.attention.head_count_kv': [U32, 1],
  'llama.attention.layer_norm_rms_epsilon': [F32, 1e-5],
};

const LLAMA_SHAPES: Readonly<Record<string, readonly number[]>> = {
  'token_embd.weight': [5, 8],
  'blk.0.attn_norm.weight': [8],
  'blk.0.attn_q.weight': [8, 8],
  'blk.0.attn_k.weight': [4, 8],
  'blk.0.attn_v.weight': [4, 8],
  'blk.0.attn_output.weight': [8, 8],
  'blk.0.ffn_norm.weight': [8],
  'blk.0.ffn_gate.weight': [12, 8],
  'blk.0.ffn_up.weight': [12, 8],
  'blk.0.ffn_down.weight': [8, 12],
  'output_norm.weight': [8],
};

function tensor(name: string, shape: readonly number[]): TensorToWrite {
  const numElements = shape.reduce((product, size) => product * size, 1);
  const values = Float32Array.from({ length: numElements }, (_, i) => Math.sin(i + name.length));
  return { name, sizes: [...shape].reverse(), type: 0, bytes: new Uint8Array(values.buffer) };
}

/** Reads the small llama with other metadata (undefined = without) and other tensors (null = without). */
function llama(
  metadata: Record<string, TypedValue | undefined> = {},
  shapes: Record<string, readonly number[] | null> = {},
): GgufModel {
  const entries = Object.entries({ ...LLAMA, ...metadata }).filter(
    (entry): entry is [string, TypedValue] => entry[1] !== undefined,
  );
  const tensors = Object.entries({ ...LLAMA_SHAPES, ...shapes }).flatMap(([name, shape]) => (shape ? [tensor(name, shape)] : []));
  return readGgufModel(buildGguf({ metadata: Object.fromEntries(entries), tensors }));
}

function faultOf(read: () => unknown): ModelError {
  try {
    read();
  } catch (error) {
    expect(error).toBeInstanceOf(ModelError);
    return error as ModelError;
  }
  throw new Error('the file was accepted');
}

const attentionOf = ({ description }: GgufModel, layer = 0) => description.layers[layer].mixer as AttentionDescription;

describe('an architecture is described', () => {
  const open = (name: OracleModel) => readGgufModel(oracleFile(name));

  it('for each oracle model by exactly the tensors of its file', () => {
    for (const name of ORACLE_MODELS) {
      const { description, tensors } = open(name);
      expect([...tensors.keys()]).toEqual([...describeTensors(description).keys()]);
      expect(description).toMatchObject({ vocabSize: 320, width: 64, contextLength: 1024, tiedOutput: false });
    }
  });

  it('llama: norms before, rotary pairs side by side', () => {
    const { description } = open('llama-103');
    expect(description.layers[2]).toEqual({
      mixer: {
        kind: 'attention',
        numHeads: 4,
        numKvHeads: 2,
        headDim: 16,
        scale: 0.25,
        rotary: { pairs: 'interleaved', base: 10_000, dimensions: 16, positionScale: 1, hasFactors: false },
        queryKeyNorm: 'none',
        hasInputBias: false,
        hasOutputBias: false,
      },
      feedForward: { hidden: 128, activation: 'silu', hasBias: false },
      normBefore: true,
      normAfter: false,
    });
  });

  it('olmo2: norms behind, rows of queries and keys normed whole', () => {
    const [windowed, , , full] = open('olmo2-101').description.layers;
    expect(windowed).toMatchObject({ normBefore: false, normAfter: true, mixer: { windowSize: 16, queryKeyNorm: 'row' } });
    expect(full.mixer).toMatchObject({ windowSize: undefined, rotary: { pairs: 'halves', base: 10_000 } });
  });

  it('gemma3: norms on both sides, a rotary base for each kind of layer', () => {
    const { embeddingScale, layers } = open('gemma3-101').description;
    expect(embeddingScale).toBe(8);
    expect(layers[4]).toMatchObject({ normBefore: true, normAfter: true, feedForward: { activation: 'gelu' } });
    expect(layers[4].mixer).toMatchObject({ windowSize: 16, queryKeyNorm: 'head', rotary: { base: 10_000 } });
    expect(layers[5].mixer).toMatchObject({ windowSize: undefined, rotary: { base: 1_000_000 } });
  });

  it('mamba2: a state in every layer and nothing beside it', () => {
    const mixer = { kind: 'mamba2', inner: 128, numHeads: 8, headDim: 16, numGroups: 1, stateSize: 16, convWidth: 4 };
    expect(open('mamba2-101').description.layers[1]).toEqual({ mixer, normBefore: true, normAfter: false });
  });

  it('granitehybrid: attention where there are heads, without positions, and scaled branches', () => {
    const { residualScale, layers } = open('granitehybrid-101').description;
    expect(residualScale).toBeCloseTo(0.8, 6);
    expect(layers.map(({ mixer }) => mixer.kind)).toEqual(['mamba2', 'mamba2', 'attention', 'mamba2']);
    expect(layers[2].mixer).toMatchObject({ scale: 0.25, rotary: undefined });
  });
});

describe('what files of people have', () => {
  it('may be an output that is the embedding', () => {
    expect(llama().description.tiedOutput).toBe(true);
    expect(llama({}, { 'output.weight': [5, 8] }).description.tiedOutput).toBe(false);
  });

  it('may be biases, factors of frequencies, and heads of another width', () => {
    const model = llama(
      { 'llama.attention.key_length': [U32, 6], 'llama.rope.dimension_count': [U32, 4], 'llama.rope.freq_base': [F32, 5e5] },
      {
        'blk.0.attn_q.weight': [12, 8],
        'blk.0.attn_k.weight': [6, 8],
        'blk.0.attn_v.weight': [6, 8],
        'blk.0.attn_output.weight': [8, 12],
        'blk.0.attn_q.bias': [12],
        'blk.0.attn_k.bias': [6],
        'blk.0.attn_v.bias': [6],
        'rope_freqs.weight': [2],
      },
    );
    expect(attentionOf(model)).toMatchObject({ headDim: 6, hasInputBias: true, hasOutputBias: false });
    expect(attentionOf(model).rotary).toMatchObject({ dimensions: 4, base: 5e5, hasFactors: true });
    const reference = new ReferenceModel(model.description, dequantiseAll(model));
    expect(reference.forward([1, 4, 2], reference.createState()).every(Number.isFinite)).toBe(true);
  });

  it('may be positions that were stretched', () => {
    const model = llama({ 'llama.rope.scaling.type': [TEXT, 'linear'], 'llama.rope.scaling.factor': [F32, 8] });
    expect(attentionOf(model).rotary?.positionScale).toBe(8);
  });
});

describe('a file is refused', () => {
  it.each<[string, Record<string, TypedValue | undefined>, string, string]>([
    ['of an unknown architecture', { 'general.architecture': [TEXT, 'toString'] }, 'general.architecture', 'unsupported'],
    ['of no architecture', { 'general.architecture': undefined }, 'general.architecture', 'unsupported'],
    ['without a size', { 'llama.embedding_length': undefined }, 'llama.embedding_length', 'missing'],
    ['with a size that is text', { 'llama.block_count': [TEXT, '1'] }, 'llama.block_count', 'type'],
    ['with a size that is broken', { 'llama.block_count': [F32, 1.5] }, 'llama.block_count', 'type'],
    ['with too many layers', { 'llama.block_count': [U32, 5000] }, 'llama.block_count', 'range'],
    [
      'with an epsilon of NaN',
      { 'llama.attention.layer_norm_rms_epsilon': [F32, Number.NaN] },
      'llama.attention.layer_norm_rms_epsilon',
      'type',
    ],
    ['with heads that do not divide', { 'llama.attention.head_count_kv': [U32, 3] }, 'llama.attention.head_count_kv', 'conflict'],
    [
      'with a list of another length',
      { 'llama.feed_forward_length': [LIST, U32, [12, 12]] },
      'llama.feed_forward_length',
      'conflict',
    ],
    ['with experts', { 'llama.expert_count': [U32, 8] }, 'llama.expert_count', 'unsupported'],
    ['with other values than keys', { 'llama.attention.value_length': [U32, 2] }, 'llama.attention.value_length', 'unsupported'],
    [
      'with positions stretched otherwise',
      { 'llama.rope.scaling.type': [TEXT, 'yarn'] },
      'llama.rope.scaling.type',
      'unsupported',
    ],
    ['with a kind of stretching that is no text', { 'llama.rope.scaling.type': [FLAG, 1] }, 'llama.rope.scaling.type', 'type'],
    ['that turns an odd number of values', { 'llama.rope.dimension_count': [U32, 3] }, 'llama.rope.dimension_count', 'range'],
  ])('%s', (_, metadata, path, fault) => {
    const error = faultOf(() => llama(metadata));
    expect(error.code).toBe('model-config');
    expect(error.faults).toMatchObject([{ path, code: fault }]);
  });

  it('with all its faults at once, one a key', () => {
    const error = faultOf(() => llama({ 'llama.embedding_length': undefined, 'llama.block_count': [U32, 0] }));
    expect(error.faults.map(({ path }) => path)).toEqual(['llama.embedding_length', 'llama.block_count']);
  });

  it.each<[string, Record<string, readonly number[] | null>, string, string]>([
    ['without a tensor', { 'blk.0.ffn_up.weight': null }, 'blk.0.ffn_up.weight', 'missing'],
    ['with a tensor of another shape', { 'blk.0.ffn_up.weight': [8, 12] }, 'blk.0.ffn_up.weight', 'shape'],
    ['with a tensor that nobody reads', { 'blk.0.attn_q_norm.weight': [8] }, 'blk.0.attn_q_norm.weight', 'unknown'],
    ['with a layer too many', { 'blk.1.attn_norm.weight': [8] }, 'blk.1.attn_norm.weight', 'unknown'],
  ])('%s', (_, shapes, path, fault) => {
    const error = faultOf(() => llama({}, shapes));
    expect(error).toMatchObject({ code: 'model-weights', tensor: path });
    expect(error.faults).toMatchObject([{ path, code: fault }]);
  });

  it('without an embedding', () => {
    expect(faultOf(() => llama({}, { 'token_embd.weight': null })).faults[0].path).toBe('token_embd.weight');
  });
});
