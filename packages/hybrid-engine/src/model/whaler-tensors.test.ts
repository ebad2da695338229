import { describe, expect, it } from 'vitest';
import { describeTensors } from '../description/describe-tensors.ts';
import { dequantise } from '../gguf/dequantise.ts';
import { readModel } from './model.ts';
import { ModelError } from './model-error.ts';
import { readSafetensors } from './safetensors.ts';
import { present } from './testing/present.ts';
import { whalerFiles } from './testing/whaler-files.ts';
import type { WeightTensor } from './weight-tensor.ts';
import { describeWhaler } from './whaler-description.ts';
import { readWhalerTensors, whalerTensorShapes } from './whaler-tensors.ts';

const files = whalerFiles();
const { config, description } = readModel(files);
const { tensors } = readSafetensors(files.weights);

function faultOf(changed: ReadonlyMap<string, WeightTensor>, changedConfig = config): ModelError {
  try {
    readWhalerTensors(describeWhaler(changedConfig), changed);
  } catch (error) {
    expect(error).toBeInstanceOf(ModelError);
    return error as ModelError;
  }
  throw new Error('the weights were accepted');
}

describe('weights fit a config', () => {
  it('when they are exactly the tensors that it describes', () => {
    expect([...whalerTensorShapes(description).keys()].sort()).toEqual([...tensors.keys()].sort());
    const read = readWhalerTensors(description, tensors);
    expect(Array.from(read.values(), ({ name, shape }) => [name, shape])).toEqual([...describeTensors(description)]);
    expect(present(read.get('blk.3.attn_output.weight')).bytes).toBe(present(tensors.get('layers.3.mixer.o.weight')).bytes);
  });

  it('and their decay becomes a rate', () => {
    const read = readWhalerTensors(description, tensors);
    const logarithms = dequantise(present(tensors.get('layers.2.mixer.a_log')));
    const rates = dequantise(present(read.get('blk.2.ssm_a')));
    expect([...rates]).toEqual(Array.from(logarithms, (value) => Math.fround(-Math.exp(value))));
  });

  it('and not when one is missing', () => {
    const changed = new Map(tensors);
    changed.delete('layers.3.mixer.o.weight');
    expect(faultOf(changed)).toMatchObject({ code: 'model-weights', tensor: 'layers.3.mixer.o.weight' });
  });

  it('and not when one is too many', () => {
    const changed = new Map(tensors).set('lm_head.weight', { ...present(tensors.get('embed.weight')), name: 'lm_head.weight' });
    expect(faultOf(changed).faults).toEqual([expect.objectContaining({ code: 'unknown', path: 'lm_head.weight' })]);
  });

  it('and not in another shape, of which both are named', () => {
    const error = faultOf(tensors, { ...config, mlpHidden: 512 });
    expect(error.tensor).toBe('layers.0.mlp.gate.weight');
    expect(error.faults).toHaveLength(18);
    expect(error.message).toContain('[256, 128]');
    expect(error.message).toContain('[512, 128]');
  });

  it('and not transposed', () => {
    const down = present(tensors.get('layers.0.mlp.down.weight'));
    const changed = new Map(tensors).set(down.name, { ...down, shape: [...down.shape].reverse() });
    expect(faultOf(changed).faults.map(({ path }) => path)).toEqual([down.name]);
  });

  it('and not when a layer is of another kind', () => {
    const codes = faultOf(tensors, { ...config, layerPattern: 'MSMFMM' }).faults.map(({ code }) => code);
    expect(codes.filter((code) => code === 'missing')).toHaveLength(8);
    expect(codes.filter((code) => code === 'unknown')).toHaveLength(4);
  });
});
