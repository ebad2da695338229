import type { HybridModelConfig } from './model-config.ts';
import { layerKind, ssmConvChannels, ssmProjectionSize } from './model-config.ts';
import { describeFaults, ModelError, type ModelFault } from './model-error.ts';
import type { Tensor } from './safetensors.ts';

/**
 * Every tensor that a model of this config has, with its shape, in the order of computation.
 * Matrices of projections are `[out, in]`.
 */
export function modelTensorShapes(config: HybridModelConfig): ReadonlyMap<string, readonly number[]> {
  const { dModel, mlpHidden } = config;
  const shapes = new Map<string, readonly number[]>([['embed.weight', [config.vocabSize, dModel]]]);
  for (let layer = 0; layer < config.layerPattern.length; layer++) {
    const prefix = `layers.${layer}.`;
    const mixer = layerKind(config, layer) === 'M' ? mambaShapes(config) : attentionShapes(config);
    shapes.set(`${prefix}norm1.weight`, [dModel]);
    for (const [name, shape] of mixer) shapes.set(`${prefix}mixer.${name}`, shape);
    shapes.set(`${prefix}norm2.weight`, [dModel]);
    shapes.set(`${prefix}mlp.gate.weight`, [mlpHidden, dModel]);
    shapes.set(`${prefix}mlp.up.weight`, [mlpHidden, dModel]);
    shapes.set(`${prefix}mlp.down.weight`, [dModel, mlpHidden]);
  }
  return shapes.set('norm.weight', [dModel]);
}

/**
 * Makes sure that the tensors are those of the config: all of them, in the right shapes, and no others.
 *
 * @throws {ModelError} `model-weights`, with one fault for each tensor that is missing, unknown or of another shape;
 *   `tensor` names the first
 */
export function checkWeights(config: HybridModelConfig, tensors: ReadonlyMap<string, Tensor>): void {
  const expected = modelTensorShapes(config);
  const faults: ModelFault[] = [];
  for (const [name, shape] of expected) {
    const found = tensors.get(name);
    if (found === undefined) {
      faults.push({ code: 'missing', path: name, message: `[${shape.join(', ')}] is missing` });
    } else if (found.shape.length !== shape.length || found.shape.some((size, i) => size !== shape[i])) {
      faults.push({
        code: 'shape',
        path: name,
        message: `is [${found.shape.join(', ')}], the config needs [${shape.join(', ')}]`,
      });
    }
  }
  for (const { name, shape } of tensors.values()) {
    if (!expected.has(name))
      faults.push({ code: 'unknown', path: name, message: `[${shape.join(', ')}] has no place in the config` });
  }
  if (faults.length === 0) return;
  const message = `The config does not fit the weights: ${describeFaults(faults)}. Take config and weights of the same model.`;
  throw new ModelError('model-weights', message, { tensor: faults[0].path, faults });
}

function attentionShapes(config: HybridModelConfig): [string, number[]][] {
  const { dModel, numHeads, numKvHeads, headDim } = config;
  return [
    ['q.weight', [numHeads * headDim, dModel]],
    ['k.weight', [numKvHeads * headDim, dModel]],
    ['v.weight', [numKvHeads * headDim, dModel]],
    ['o.weight', [dModel, numHeads * headDim]],
  ];
}

function mambaShapes(config: HybridModelConfig): [string, number[]][] {
  const { dModel, ssmInner, ssmNumHeads, ssmConvWidth } = config;
  const channels = ssmConvChannels(config);
  return [
    ['in_proj.weight', [ssmProjectionSize(config), dModel]],
    ['conv_weight', [channels, ssmConvWidth]],
    ['conv_bias', [channels]],
    ['dt_bias', [ssmNumHeads]],
    ['a_log', [ssmNumHeads]],
    ['d_skip', [ssmNumHeads]],
    ['norm.weight', [ssmInner]],
    ['out_proj.weight', [dModel, ssmInner]],
  ];
}
