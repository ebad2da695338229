import { describeTensors } from '../description/describe-tensors.ts';
import type { ModelDescription } from '../description/model-description.ts';
import { tensorFaults } from '../description/tensor-faults.ts';
import { dequantise } from '../gguf/dequantise.ts';
import { describeFaults, ModelError } from './model-error.ts';
import type { WeightTensor } from './weight-tensor.ts';

/** Names in the demo model's file by those of a description, without the layer's prefix. */
const FILE_NAMES: Readonly<Record<string, string>> = {
  'token_embd.weight': 'embed.weight',
  'attn_norm.weight': 'norm1.weight',
  'attn_q.weight': 'mixer.q.weight',
  'attn_k.weight': 'mixer.k.weight',
  'attn_v.weight': 'mixer.v.weight',
  'attn_output.weight': 'mixer.o.weight',
  'ssm_in.weight': 'mixer.in_proj.weight',
  'ssm_conv1d.weight': 'mixer.conv_weight',
  'ssm_conv1d.bias': 'mixer.conv_bias',
  'ssm_dt.bias': 'mixer.dt_bias',
  ssm_a: 'mixer.a_log',
  ssm_d: 'mixer.d_skip',
  'ssm_norm.weight': 'mixer.norm.weight',
  'ssm_out.weight': 'mixer.out_proj.weight',
  'ffn_norm.weight': 'norm2.weight',
  'ffn_gate.weight': 'mlp.gate.weight',
  'ffn_up.weight': 'mlp.up.weight',
  'ffn_down.weight': 'mlp.down.weight',
  'output_norm.weight': 'norm.weight',
};

/** Those that the file has as one row of values, whatever shape the description gives them. */
const FLAT = new Set(['mixer.a_log', 'mixer.d_skip', 'mixer.norm.weight']);

/** What `a_log` is named once it is a rate: a state decays by `exp(dt × ssm_a)`, and `ssm_a = -exp(a_log)`. */
const RATE = 'ssm_a';

/** Every tensor of the demo model's file, with its shape there, in the order of computation. */
export function whalerTensorShapes(model: ModelDescription): ReadonlyMap<string, readonly number[]> {
  const shapes = new Map<string, readonly number[]>();
  for (const [name, shape] of describeTensors(model)) {
    const { layer, inLayer } = fileName(name);
    shapes.set(layer + inLayer, FLAT.has(inLayer) ? [shape.reduce((product, size) => product * size, 1)] : shape);
  }
  return shapes;
}

/**
 * The tensors of the demo model's file as a description names and shapes them.
 *
 * @param tensors by their names in the file; the result has views into them
 * @throws {ModelError} `model-weights`, with one fault for each tensor that is missing, unknown or of another shape;
 *   `tensor` names the first
 */
export function readWhalerTensors(
  model: ModelDescription,
  tensors: ReadonlyMap<string, WeightTensor>,
): ReadonlyMap<string, WeightTensor> {
  const faults = tensorFaults(whalerTensorShapes(model), tensors);
  if (faults.length > 0) {
    const message = `The config does not fit the weights: ${describeFaults(faults)}. Take config and weights of the same model.`;
    throw new ModelError('model-weights', message, { tensor: faults[0].path, faults });
  }
  const read = new Map<string, WeightTensor>();
  for (const [name, shape] of describeTensors(model)) {
    const { layer, inLayer } = fileName(name);
    const tensor = { ...(tensors.get(layer + inLayer) as WeightTensor), name, shape };
    read.set(name, name.endsWith(`.${RATE}`) ? rateOf(tensor) : tensor);
  }
  return read;
}

function fileName(name: string): { layer: string; inLayer: string } {
  const [, index, rest] = /^blk\.(\d+)\.(.+)$/.exec(name) ?? [];
  if (index === undefined) return { layer: '', inLayer: FILE_NAMES[name] };
  return { layer: `layers.${index}.`, inLayer: FILE_NAMES[rest] };
}

function rateOf(logarithms: WeightTensor): WeightTensor {
  const rates = dequantise(logarithms).map((value) => -Math.exp(value));
  return { ...logarithms, type: 'F32', bytes: new Uint8Array(rates.buffer) };
}
