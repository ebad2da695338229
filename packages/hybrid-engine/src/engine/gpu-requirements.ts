import type { LayerDescription, ModelDescription } from '../description/model-description.ts';
import { describeFaults, ModelError, type ModelFault } from '../model/model-error.ts';

/** Dense kernels read rows by four values. */
const MULTIPLE = 4;

/** What the kernels of `@bufferwise/gpu-kernels` serve. */
const HEAD_DIM = { least: 8, most: 256 };
const MAX_CONV_WIDTH = 4;
const MAX_STATE_SIZE = 1024;

/**
 * Refuses what can be described and has no kernels.
 *
 * @throws {ModelError} `model-config`, with one fault for each size that the kernels do not serve
 */
export function requireKernels(model: ModelDescription): void {
  const faults: ModelFault[] = [];
  const multiple = (path: string, size: number) => {
    if (size % MULTIPLE !== 0) note(faults, path, `is ${size}, and kernels read multiples of ${MULTIPLE}`);
  };
  multiple('width', model.width);
  model.layers.forEach(({ mixer, feedForward }, index) => {
    const path = `layers[${index}]`;
    if (feedForward) multiple(`${path}.feedForward.hidden`, feedForward.hidden);
    if (mixer.kind === 'mamba2') multiple(`${path}.mixer.inner / numGroups`, mixer.inner / mixer.numGroups);
    else multiple(`${path}.mixer.headDim`, mixer.headDim);
    noteLimits(mixer, `${path}.mixer`, faults);
  });
  if (faults.length === 0) return;
  const message = `There are no kernels for this model: ${describeFaults(faults)}. \`ReferenceModel\` runs it, slowly.`;
  throw new ModelError('model-config', message, { faults });
}

function noteLimits(mixer: LayerDescription['mixer'], path: string, faults: ModelFault[]): void {
  if (mixer.kind === 'attention') {
    const { headDim } = mixer;
    if (headDim >= HEAD_DIM.least && headDim <= HEAD_DIM.most) return;
    note(faults, `${path}.headDim`, `is ${headDim}, and heads of ${HEAD_DIM.least} to ${HEAD_DIM.most} are served`);
    return;
  }
  const { convWidth, stateSize } = mixer;
  if (convWidth > MAX_CONV_WIDTH) note(faults, `${path}.convWidth`, `is ${convWidth}, and up to ${MAX_CONV_WIDTH} are served`);
  if (stateSize > MAX_STATE_SIZE) note(faults, `${path}.stateSize`, `is ${stateSize}, and up to ${MAX_STATE_SIZE} are served`);
}

function note(faults: ModelFault[], path: string, message: string): void {
  faults.push({ code: 'unsupported', path, message });
}
