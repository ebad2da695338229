import { describe, expect, it } from 'vitest';
import { parseModelConfig } from './model-config.ts';
import { ModelError, type ModelFault } from './model-error.ts';
import { whalerFiles } from './testing/whaler-files.ts';
import { decodeUtf8 } from './utf8.ts';

const WHALER = JSON.parse(decodeUtf8(whalerFiles().config));

function faultsOf(json: unknown): readonly ModelFault[] {
  try {
    parseModelConfig(json);
  } catch (error) {
    expect(error).toBeInstanceOf(ModelError);
    expect((error as ModelError).code).toBe('model-config');
    return (error as ModelError).faults;
  }
  throw new Error('the config was accepted');
}

describe('the config of the demo model', () => {
  const config = parseModelConfig(WHALER);

  it('is read under our names', () => {
    expect(config).toEqual({
      name: 'whaler-1m',
      vocabSize: 1024,
      dModel: 128,
      layerPattern: 'MSMFMS',
      normEps: 1e-5,
      numHeads: 4,
      numKvHeads: 2,
      headDim: 32,
      ropeTheta: 10000,
      slidingWindow: 128,
      numSinkTokens: 4,
      mlpHidden: 256,
      ssmInner: 256,
      ssmHeadDim: 32,
      ssmNumHeads: 8,
      ssmState: 16,
      ssmConvWidth: 4,
    });
    expect(Object.isFrozen(config)).toBe(true);
  });
});

describe('a config is refused', () => {
  it.each<[string, object, string, string]>([
    ['with a name that is a number', { name: 3 }, 'type', 'name'],
    ['with a layer of an unknown kind', { layer_pattern: 'MSX' }, 'type', 'layer_pattern'],
    ['without layers', { layer_pattern: '' }, 'type', 'layer_pattern'],
    ['with more layers than can be', { layer_pattern: 'M'.repeat(257) }, 'range', 'layer_pattern'],
    ['with a size given as text', { d_model: '128' }, 'type', 'd_model'],
    ['with a fractional size', { d_model: 128.5 }, 'type', 'd_model'],
    ['with a width below 4', { d_model: 0 }, 'range', 'd_model'],
    ['with a width that four lanes do not divide', { d_model: 130 }, 'range', 'd_model'],
    ['with a width beyond bounds', { d_model: 2 ** 15 }, 'range', 'd_model'],
    ['with an empty window', { sliding_window: 0 }, 'range', 'sliding_window'],
    ['with a negative number of sinks', { num_sink_tokens: -1 }, 'range', 'num_sink_tokens'],
    ['with an epsilon of zero', { norm_eps: 0 }, 'range', 'norm_eps'],
    ['with an epsilon that is null', { norm_eps: null }, 'type', 'norm_eps'],
    ['with KV heads that do not divide the heads', { num_kv_heads: 3 }, 'conflict', 'num_kv_heads'],
    ['with SSM heads that do not fill the inner size', { ssm_num_heads: 7 }, 'conflict', 'ssm_inner'],
    ['with an output matrix of its own', { tie_embeddings: false }, 'unsupported', 'tie_embeddings'],
    ['with a field that nobody knows', { attention_bias: true }, 'unknown', 'attention_bias'],
  ])('%s', (_, changes, code, path) => {
    expect(faultsOf({ ...WHALER, ...changes })).toEqual([expect.objectContaining({ code, path })]);
  });

  it('once for every field that is missing', () => {
    const faults = faultsOf({});
    expect(faults.map(({ path }) => path).sort()).toEqual(Object.keys(WHALER).sort());
    expect(faults.every(({ code }) => code === 'missing')).toBe(true);
  });

  it('with all its faults at once', () => {
    const faults = faultsOf({ ...WHALER, d_model: -4, head_dim: 'x', surprise: 1 });
    expect(faults.map(({ path }) => path)).toEqual(['d_model', 'head_dim', 'surprise']);
  });

  it.each([null, [], 'text', 7, undefined])('that is %j instead of an object', (json) => {
    expect(() => parseModelConfig(json)).toThrow(ModelError);
  });
});
