import { describe, expect, it } from 'vitest';
import { type HybridModel, readModel } from './model.ts';
import { ModelError } from './model-error.ts';
import type { Tensor } from './safetensors.ts';
import { present } from './testing/present.ts';
import { whalerFiles } from './testing/whaler-files.ts';
import { checkWeights, modelTensorShapes } from './weights.ts';

const { config, tensors }: HybridModel = readModel(whalerFiles());

function faultOf(changed: ReadonlyMap<string, Tensor>, changedConfig = config): ModelError {
  try {
    checkWeights(changedConfig, changed);
  } catch (error) {
    expect(error).toBeInstanceOf(ModelError);
    return error as ModelError;
  }
  throw new Error('the weights were accepted');
}

describe('weights fit a config', () => {
  it('when they are exactly the tensors that it describes', () => {
    expect([...modelTensorShapes(config).keys()].sort()).toEqual([...tensors.keys()].sort());
    expect(() => checkWeights(config, tensors)).not.toThrow();
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
