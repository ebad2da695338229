import { describeFaults, ModelError, type ModelFault } from './model-error.ts';

/** Kind of a layer's mixer: Mamba-2, attention with a sliding window, or full attention. */
export type LayerKind = 'M' | 'S' | 'F';

/** Sizes of a hybrid model. All are counts of values unless said otherwise. */
export interface HybridModelConfig {
  readonly name: string;
  readonly vocabSize: number;
  /** Width of the residual stream. */
  readonly dModel: number;
  /** One letter a layer, first layer first: see `LayerKind`. */
  readonly layerPattern: string;
  /** Added to the mean square in every RMS norm. */
  readonly normEps: number;
  readonly numHeads: number;
  /** Each serves `numHeads / numKvHeads` query heads. */
  readonly numKvHeads: number;
  /** Values of one attention head, even: rotary positions turn the pairs (i, i + headDim / 2). */
  readonly headDim: number;
  /** Base of the rotary frequencies. */
  readonly ropeTheta: number;
  /** Tokens that a query of an `S` layer sees, itself included. */
  readonly slidingWindow: number;
  /** First tokens of the sequence that `S` layers see in spite of the window. */
  readonly numSinkTokens: number;
  readonly mlpHidden: number;
  /** `ssmNumHeads * ssmHeadDim`. */
  readonly ssmInner: number;
  readonly ssmHeadDim: number;
  readonly ssmNumHeads: number;
  /** State values for each inner channel. */
  readonly ssmState: number;
  /** Taps of the causal convolution, 2 to 4; `ssmConvWidth - 1` rows before it are remembered. */
  readonly ssmConvWidth: number;
}

const MAX_LAYERS = 256;

/** Whole numbers: field of the file, name here, least, most, and what it must be a multiple of. */
const WHOLE_NUMBERS = [
  ['vocab_size', 'vocabSize', 1, 2 ** 20, 1],
  ['d_model', 'dModel', 4, 2 ** 14, 4],
  ['num_heads', 'numHeads', 1, 256, 1],
  ['num_kv_heads', 'numKvHeads', 1, 256, 1],
  ['head_dim', 'headDim', 4, 512, 4],
  ['sliding_window', 'slidingWindow', 1, 2 ** 20, 1],
  ['num_sink_tokens', 'numSinkTokens', 0, 2 ** 16, 1],
  ['mlp_hidden', 'mlpHidden', 4, 2 ** 16, 4],
  ['ssm_inner', 'ssmInner', 4, 2 ** 15, 4],
  ['ssm_head_dim', 'ssmHeadDim', 1, 2 ** 12, 1],
  ['ssm_num_heads', 'ssmNumHeads', 1, 2 ** 12, 1],
  ['ssm_state', 'ssmState', 1, 512, 1],
  ['ssm_conv_width', 'ssmConvWidth', 2, 4, 1],
] as const;

/** Positive numbers: field of the file, name here, least, most. */
const REAL_NUMBERS = [
  ['norm_eps', 'normEps', 1e-12, 1e-1],
  ['rope_theta', 'ropeTheta', 1, 1e9],
] as const;

/**
 * Checks and names the contents of a `config.json`. All faults are found in one pass.
 *
 * @param json the parsed file; field names as in the file (`d_model`), unknown fields are refused because they may change
 *   what the weights mean
 * @returns frozen
 * @throws {ModelError} `model-config`, with one fault for each thing wrong; its path is the name of the field
 * @example parseModelConfig(JSON.parse(text)).layerPattern   // 'MSMFMS'
 */
export function parseModelConfig(json: unknown): HybridModelConfig {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw new ModelError('model-config', 'config.json does not hold an object. Take the file that came with the weights.');
  }
  const fields = new Map<string, unknown>(Object.entries(json));
  const faults: ModelFault[] = [];
  const take = (path: string): unknown => {
    const value = fields.get(path);
    fields.delete(path);
    if (value === undefined) faults.push({ code: 'missing', path, message: 'is missing' });
    return value;
  };

  const config = {
    name: readName(take('name'), faults),
    layerPattern: readLayerPattern(take('layer_pattern'), faults),
  } as Record<string, unknown>;
  for (const [path, key, least, most, multiple] of WHOLE_NUMBERS) {
    config[key] = readNumber(path, take(path), { least, most, multiple }, faults);
  }
  for (const [path, key, least, most] of REAL_NUMBERS) config[key] = readNumber(path, take(path), { least, most }, faults);
  const tied = take('tie_embeddings');
  if (tied !== undefined && tied !== true) {
    faults.push({ code: 'unsupported', path: 'tie_embeddings', message: 'must be true: the output uses the embedding matrix' });
  }
  for (const path of fields.keys()) faults.push({ code: 'unknown', path, message: 'is not a field of this kind of model' });

  const checked = config as unknown as HybridModelConfig;
  if (faults.length === 0) findConflicts(checked, faults);
  if (faults.length > 0) {
    throw new ModelError('model-config', `config.json does not describe a hybrid model: ${describeFaults(faults)}.`, { faults });
  }
  return Object.freeze(checked);
}

function readName(value: unknown, faults: ModelFault[]): unknown {
  if (value !== undefined && (typeof value !== 'string' || value.length === 0 || value.length > 200)) {
    faults.push({ code: 'type', path: 'name', message: 'must be a text of 1 to 200 characters' });
  }
  return value;
}

function readLayerPattern(value: unknown, faults: ModelFault[]): unknown {
  const path = 'layer_pattern';
  if (value === undefined) return value;
  if (typeof value !== 'string' || !/^[MSF]+$/.test(value)) {
    faults.push({
      code: 'type',
      path,
      message: 'must be a text of the letters M (Mamba-2), S (sliding window) and F (full attention)',
    });
  } else if (value.length > MAX_LAYERS) {
    faults.push({ code: 'range', path, message: `has ${value.length} layers, at most ${MAX_LAYERS} are possible` });
  }
  return value;
}

function readNumber(
  path: string,
  value: unknown,
  limits: { least: number; most: number; multiple?: number },
  faults: ModelFault[],
): unknown {
  const { least, most, multiple } = limits;
  const whole = multiple !== undefined;
  if (value === undefined) return value;
  if (typeof value !== 'number' || !(whole ? Number.isSafeInteger(value) : Number.isFinite(value))) {
    faults.push({ code: 'type', path, message: `must be a ${whole ? 'whole' : 'finite'} number, is ${JSON.stringify(value)}` });
  } else if (value < least || value > most) {
    faults.push({ code: 'range', path, message: `must be ${least} to ${most}, is ${value}` });
  } else if (whole && value % multiple !== 0) {
    faults.push({ code: 'range', path, message: `must be a multiple of ${multiple}, is ${value}` });
  }
  return value;
}

function findConflicts(config: HybridModelConfig, faults: ModelFault[]): void {
  const { numHeads, numKvHeads, ssmInner, ssmNumHeads, ssmHeadDim } = config;
  if (numHeads % numKvHeads !== 0) {
    faults.push({ code: 'conflict', path: 'num_kv_heads', message: `${numKvHeads} must divide num_heads, ${numHeads}` });
  }
  if (ssmInner !== ssmNumHeads * ssmHeadDim) {
    const product = `ssm_num_heads x ssm_head_dim = ${ssmNumHeads * ssmHeadDim}`;
    faults.push({ code: 'conflict', path: 'ssm_inner', message: `${ssmInner} must be ${product}` });
  }
}
