import { type ElementType, GraphBuilder } from './graph-builder.ts';

/** A decoder of two layers, exported as Optimum does. */
export interface TinyDecoderOptions {
  /** Element type of keys and values. Default `float32`; all arithmetic is in float32. */
  kv?: 'float32' | 'float16';
  /** Element type of the logits. Default `float32`. */
  logits?: 'float32' | 'float16';
  /** Whether it takes `position_ids`. Without, positions are counted from the mask. Default true. */
  positionIds?: boolean;
  /**
   * Whether it takes `use_cache_branch`, as a merged model with two branches: without the cache what is past is not seen, with it
   * there is no causal mask, as in a branch that was traced with one token. Default false.
   */
  cacheBranch?: boolean;
  /** Whether it takes `num_logits_to_keep`, and computes the logits of so many last tokens. Default false. */
  numLogitsToKeep?: boolean;
  /** Inputs that it takes besides, and does nothing with. */
  extraInputs?: readonly { name: string; type: ElementType; shape: readonly (number | string)[] }[];
  /** Changes the shape that the inputs of keys and values are declared with. Default `['batch_size', NUM_HEADS, 'past_sequence_length', HEAD_DIM]`. */
  pastShape?: readonly (number | string)[];
  /** Leaves out `present.1.value`, as an export without the cache. Default false. */
  withoutLastPresent?: boolean;
  /** Answers with the new rows alone in `present`. Default false. */
  newRowsOnly?: boolean;
}

export const VOCAB = 32;
export const NUM_LAYERS = 2;
export const NUM_HEADS = 2;
export const HEAD_DIM = 8;
const HIDDEN = NUM_HEADS * HEAD_DIM;
const MAX_POSITIONS = 512;
const HIDDEN_FROM_VIEW = -1e9;

/** The bytes of a model file: embeddings, attention over past and present, a residual layer, logits. Weights are the same each time. */
export function tinyDecoder(options: TinyDecoderOptions = {}): Uint8Array {
  const { kv = 'float32', logits: logitsType = 'float32', positionIds = true } = options;
  const graph = new GraphBuilder();
  const weights = weightSource(20);
  const matrix = (rows: number, columns: number) => graph.floats([rows, columns], weights(rows * columns, 1 / Math.sqrt(rows)));
  const inputIds = graph.input('input_ids', 'int64', ['batch_size', 'sequence_length']);
  const mask = graph.input('attention_mask', 'int64', ['batch_size', 'total_sequence_length']);
  const givenPositions = positionIds ? graph.input('position_ids', 'int64', ['batch_size', 'sequence_length']) : undefined;
  const cacheBranch = options.cacheBranch ? graph.cast(graph.input('use_cache_branch', 'bool', [1]), 'float32') : undefined;
  const toKeep = options.numLogitsToKeep ? graph.input('num_logits_to_keep', 'int64', []) : undefined;
  for (const { name, type, shape } of options.extraInputs ?? []) graph.input(name, type, shape);

  const zero = graph.ints([], [0]);
  const one = graph.ints([], [1]);
  const lengthOf = (input: string) => graph.node('Gather', [graph.node('Shape', [input]), graph.ints([], [1])], { axis: 0 });
  const total = lengthOf(mask);
  const past = graph.node('Sub', [total, lengthOf(inputIds)]);
  const keys = graph.node('Range', [zero, total, one]);
  const queries = graph.node('Range', [past, total, one]);
  const flag = (bits: string) => graph.node('Mul', [graph.cast(bits, 'float32'), graph.floats([], [HIDDEN_FROM_VIEW])]);
  const column = graph.node('Unsqueeze', [queries, graph.ints([1], [1])]);
  let bias = flag(graph.node('Greater', [keys, column]));
  if (cacheBranch !== undefined) {
    const without = graph.node('Sub', [graph.floats([1], [1]), cacheBranch]);
    bias = graph.node('Add', [
      graph.node('Mul', [bias, without]),
      graph.node('Mul', [flag(graph.node('Less', [keys, past])), without]),
    ]);
  }
  bias = graph.node('Add', [bias, flag(graph.node('Equal', [mask, zero]))]);

  const positions = givenPositions ?? queries;
  let hidden = graph.node('Add', [
    graph.node('Gather', [matrix(VOCAB, HIDDEN), inputIds], { axis: 0 }),
    graph.node('Gather', [matrix(MAX_POSITIONS, HIDDEN), positions], { axis: 0 }),
  ]);
  const heads = (rows: string) =>
    graph.node('Transpose', [graph.node('Reshape', [rows, graph.ints([4], [0, 0, NUM_HEADS, HEAD_DIM])])], {
      perm: [0, 2, 1, 3],
    });
  const pastShape = options.pastShape ?? ['batch_size', NUM_HEADS, 'past_sequence_length', HEAD_DIM];
  for (let layer = 0; layer < NUM_LAYERS; layer++) {
    const withPast = (role: string) => {
      const before = graph.input(`past_key_values.${layer}.${role}`, kv, pastShape);
      const now = graph.cast(heads(graph.node('MatMul', [hidden, matrix(HIDDEN, HIDDEN)])), kv);
      const name = `present.${layer}.${role}`;
      const isOutput = !(options.withoutLastPresent && name === 'present.1.value');
      const all = graph.node('Concat', [before, now], { axis: 2 }, isOutput && !options.newRowsOnly ? name : undefined);
      if (isOutput && options.newRowsOnly) graph.node('Identity', [now], {}, name);
      if (isOutput) graph.output(name, kv, ['batch_size', NUM_HEADS, 'total_sequence_length', HEAD_DIM]);
      return graph.cast(all, 'float32');
    };
    const key = graph.node('Transpose', [withPast('key')], { perm: [0, 1, 3, 2] });
    const value = withPast('value');
    const query = heads(graph.node('MatMul', [hidden, matrix(HIDDEN, HIDDEN)]));
    const scores = graph.node('Mul', [graph.node('MatMul', [query, key]), graph.floats([], [1 / Math.sqrt(HEAD_DIM)])]);
    const seen = graph.node('MatMul', [graph.node('Softmax', [graph.node('Add', [scores, bias])], { axis: 3 }), value]);
    const joined = graph.node('Reshape', [
      graph.node('Transpose', [seen], { perm: [0, 2, 1, 3] }),
      graph.ints([3], [0, 0, HIDDEN]),
    ]);
    hidden = graph.node('Add', [hidden, graph.node('MatMul', [joined, matrix(HIDDEN, HIDDEN)])]);
    hidden = graph.node('Add', [hidden, graph.node('Tanh', [graph.node('MatMul', [hidden, matrix(HIDDEN, HIDDEN)])])]);
  }
  if (toKeep !== undefined) {
    const from = graph.node('Unsqueeze', [graph.node('Neg', [toKeep]), graph.ints([1], [0])]);
    hidden = graph.node('Slice', [hidden, from, graph.ints([1], [MAX_POSITIONS]), graph.ints([1], [1])]);
  }
  graph.cast(graph.node('MatMul', [hidden, matrix(HIDDEN, VOCAB)]), logitsType, 'logits');
  graph.output('logits', logitsType, ['batch_size', 'num_logits', VOCAB]);
  return graph.finish();
}

/** Numbers from -scale to scale, the same each time. */
function weightSource(seed: number): (count: number, scale: number) => Float32Array {
  let state = seed;
  return (count, scale) =>
    Float32Array.from({ length: count }, () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return (state / 0x7fffffff - 1) * scale * 2;
    });
}
