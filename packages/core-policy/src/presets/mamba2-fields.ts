import { checkGroups, type Mamba2Sizes } from './mamba2-state.ts';
import { checkEqual, fieldOf, type ModelFields, pathOf, readSize } from './model-fields.ts';

/**
 * Reads the sizes of Mamba-2 layers in models that name them `mamba_…`. The inner width is `mamba_d_ssm`, else `mamba_expand`
 * times the hidden size; a `mamba_d_head` of `"auto"` divides it evenly among the heads.
 * @see huggingface/transformers configuration_granitemoehybrid.py, configuration_falcon_h1.py
 */
export function readPrefixedMamba2(model: ModelFields): Mamba2Sizes {
  const inner = fieldOf(model, 'mamba_d_ssm') === undefined ? expandedSize(model) : readSize(model, 'mamba_d_ssm');
  const numHeads = readSize(model, 'mamba_n_heads');
  const sizes = {
    numHeads,
    headDim: readHeadDim(model, inner, numHeads),
    numGroups: readSize(model, 'mamba_n_groups'),
    stateSize: readSize(model, 'mamba_d_state'),
    convWidth: readSize(model, 'mamba_d_conv'),
  };
  checkGroups(model, 'mamba_n_heads', sizes);
  return sizes;
}

function expandedSize(model: ModelFields): number {
  return readSize(model, 'mamba_expand') * readSize(model, 'hidden_size');
}

function readHeadDim(model: ModelFields, inner: number, numHeads: number): number {
  const given = fieldOf(model, 'mamba_d_head');
  if (given === undefined || given === 'auto') {
    if (inner % numHeads > 0) {
      const message = `must divide the inner width, ${inner}, without rest, got ${numHeads}.`;
      model.faults.note('preset-not-divisible', pathOf(model, 'mamba_n_heads'), numHeads, message);
    }
    return inner / numHeads;
  }
  const headDim = readSize(model, 'mamba_d_head');
  checkEqual(model, 'mamba_d_head', headDim, inner / numHeads, 'the inner width divided by mamba_n_heads');
  return headDim;
}
