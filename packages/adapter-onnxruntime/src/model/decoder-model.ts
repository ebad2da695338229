import type { InferenceSession, Tensor } from 'onnxruntime-common';
import { OnnxDecoderError } from '../errors.ts';

/** Element types that keys and values are kept in, with their bytes. */
export const KV_ELEMENT_BYTES = { float32: 4, float16: 2 } as const;
export type KvElementType = keyof typeof KV_ELEMENT_BYTES;

/** Keys or values of one layer: `[1, numKvHeads, tokens, headDim]`, as input `past` and, longer by what was run, as output `present`. */
export interface KvTensor {
  readonly layerId: number;
  readonly role: 'key' | 'value';
  readonly past: string;
  readonly present: string;
  readonly type: KvElementType;
  readonly numKvHeads: number;
  readonly headDim: number;
}

/** What a decoder takes and gives, read from the metadata of its `InferenceSession`. */
export interface DecoderModel {
  /** Key and value of each layer, layers ascending. */
  readonly kvTensors: readonly KvTensor[];
  readonly takesMask: boolean;
  readonly takesPositions: boolean;
  /** A merged export with a branch for the first run and one for those with a past. */
  readonly takesCacheBranch: boolean;
  /** Rank of `num_logits_to_keep`, 0 or 1; null where the model always gives the logits of all tokens. */
  readonly numLogitsRank: number | null;
  /** Tokens that the model knows; null where its export does not say. */
  readonly vocabSize: number | null;
}

type TensorMetadata = InferenceSession.TensorValueMetadata;

const PAST = /^past_key_values\.(\d+)\.(key|value)$/;

/** Inputs besides keys and values: type, and the ranks they may have. */
const INPUTS: Readonly<Record<string, { type: Tensor.Type; ranks: readonly number[] }>> = {
  input_ids: { type: 'int64', ranks: [2] },
  attention_mask: { type: 'int64', ranks: [2] },
  position_ids: { type: 'int64', ranks: [2] },
  use_cache_branch: { type: 'bool', ranks: [1] },
  num_logits_to_keep: { type: 'int64', ranks: [0, 1] },
};

/** Known inputs that a cache of keys and values can do nothing with. The first that fits tells why. */
const REFUSED: readonly [pattern: RegExp, why: string][] = [
  [
    /conv|ssm|recurrent|rwkv|(?:^|_)state/i,
    'is recurrent state: it cannot be cut at a token as keys and values can, so a prefix without its snapshot would give wrong text',
  ],
  [/encoder|cross/i, 'belongs to an encoder; only models that are a decoder alone are served'],
  [/embeds|pixel|image|audio/i, 'takes activations instead of tokens, by which no prefix can be found'],
];

/**
 * Reads which inputs to feed and what pages must hold.
 *
 * @throws {OnnxDecoderError} `onnx-model`, with the input or output at fault, on a model that is no plain decoder with `past_key_values`
 */
export function readDecoderModel(session: Pick<InferenceSession, 'inputMetadata' | 'outputMetadata'>): DecoderModel {
  const inputs = tensorsByName(session.inputMetadata);
  const outputs = tensorsByName(session.outputMetadata);
  const kvTensors = [...inputs.values()].flatMap((input) => {
    const [, layer, role] = PAST.exec(input.name) ?? [];
    if (layer !== undefined) return [kvTensor(input, Number(layer), role as KvTensor['role'])];
    checkInput(input);
    return [];
  });
  if (!inputs.has('input_ids')) throw refused('input_ids', 'is missing: tokens go in there');
  if (kvTensors.length === 0)
    throw refused(
      'past_key_values.0.key',
      'is missing: export the model with its cache (in Optimum, task text-generation-with-past)',
    );
  kvTensors.sort((a, b) => a.layerId - b.layerId || (a.role < b.role ? -1 : 1));
  checkPairs(kvTensors);
  for (const tensor of kvTensors) checkPresent(tensor, outputs);
  return {
    kvTensors,
    takesMask: inputs.has('attention_mask'),
    takesPositions: inputs.has('position_ids'),
    takesCacheBranch: inputs.has('use_cache_branch'),
    numLogitsRank: inputs.get('num_logits_to_keep')?.shape.length ?? null,
    vocabSize: vocabSize(outputs.get('logits')),
  };
}

/** The same as an input and as an output, by name. */
function tensorsByName(metadata: readonly InferenceSession.ValueMetadata[] | undefined): Map<string, TensorMetadata> {
  if (metadata === undefined)
    throw new OnnxDecoderError(
      'onnx-model',
      'this version of ONNX Runtime does not tell the shapes of inputs (`inputMetadata`); install a newer one',
    );
  return new Map(
    metadata.map((value) => {
      if (!value.isTensor) throw refused(value.name, 'is no tensor');
      return [value.name, value];
    }),
  );
}

function checkInput({ name, type, shape }: TensorMetadata): void {
  const known = INPUTS[name];
  if (known === undefined) {
    const why = REFUSED.find(([pattern]) => pattern.test(name))?.[1] ?? 'is not known, and what it should be fed with neither';
    throw refused(name, why);
  }
  if (type !== known.type) throw refused(name, `is ${type}; ${known.type} is fed`);
  if (!known.ranks.includes(shape.length))
    throw refused(name, `has the shape ${shown(shape)}; of rank ${known.ranks.join(' or ')} is fed`);
  if (name !== 'use_cache_branch' && shape.length === 2 && !isDynamicOr(shape[0], 1)) throw refused(name, oneSequence(shape));
}

function kvTensor({ name, type, shape }: TensorMetadata, layerId: number, role: KvTensor['role']): KvTensor {
  if (!(type in KV_ELEMENT_BYTES)) throw refused(name, `is ${type}; pages hold float32 or float16`);
  const [batch, numKvHeads, past, headDim] = shape;
  if (shape.length !== 4 || typeof numKvHeads !== 'number' || typeof headDim !== 'number' || numKvHeads < 1 || headDim < 1)
    throw refused(
      name,
      `has the shape ${shown(shape)}; [batch, numKvHeads, pastLength, headDim] with numbers for both sizes is read`,
    );
  if (typeof past === 'number' && past >= 0)
    throw refused(name, `has room for exactly ${past} tokens: a cache of fixed length is not served`);
  if (!isDynamicOr(batch, 1)) throw refused(name, oneSequence(shape));
  const present = `present.${layerId}.${role}`;
  return { layerId, role, past: name, present, type: type as KvElementType, numKvHeads, headDim };
}

/** Sorted: every key stands before its value. */
function checkPairs(kvTensors: readonly KvTensor[]): void {
  for (const { layerId, role, past } of kvTensors) {
    const other = role === 'key' ? 'value' : 'key';
    if (!kvTensors.some((tensor) => tensor.layerId === layerId && tensor.role === other))
      throw refused(`past_key_values.${layerId}.${other}`, `is missing, and ${past} is there`);
  }
}

function checkPresent(
  { present, past, type, numKvHeads, headDim }: KvTensor,
  outputs: ReadonlyMap<string, TensorMetadata>,
): void {
  const output = outputs.get(present);
  if (output === undefined) throw refused(present, `is missing among the outputs: what ${past} is to be next time`);
  const { shape } = output;
  const fits = shape.length === 4 && isDynamicOr(shape[1], numKvHeads) && isDynamicOr(shape[3], headDim);
  if (output.type !== type || !fits)
    throw refused(present, `is ${output.type} ${shown(shape)}, and ${past} is ${type} with ${numKvHeads} heads of ${headDim}`);
}

function vocabSize(logits: TensorMetadata | undefined): number | null {
  if (logits === undefined) throw refused('logits', 'is missing among the outputs');
  if (!(logits.type in KV_ELEMENT_BYTES)) throw refused('logits', `is ${logits.type}; float32 or float16 is read`);
  if (logits.shape.length !== 3)
    throw refused('logits', `has the shape ${shown(logits.shape)}; [batch, tokens, vocabulary] is read`);
  const size = logits.shape[2];
  return typeof size === 'number' && size > 0 ? size : null;
}

/** Runtimes name a dimension that changes from run to run by a text, or by a number below 0. */
function isDynamicOr(dimension: number | string, size: number): boolean {
  return typeof dimension !== 'number' || dimension < 0 || dimension === size;
}

const oneSequence = (shape: readonly (number | string)[]) =>
  `has the shape ${shown(shape)}, and sequences are run one at a time; export with a batch of 1 or any size`;

const shown = (shape: readonly (number | string)[]) => `[${shape.join(', ')}]`;

function refused(valueName: string, why: string): OnnxDecoderError {
  return new OnnxDecoderError('onnx-model', `this model cannot be served: ${valueName} ${why}`, { valueName });
}
