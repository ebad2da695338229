import { fieldOf, type ModelFields, pathOf, readCount, readLayerKinds } from './model-fields.ts';
import { fullAttentionPart, type ModelShape, type TokenRow } from './model-shape.ts';

/** Words of `layer_types`, and whether a layer of that kind has a window. */
const IS_WINDOWED: Readonly<Record<string, boolean>> = { full_attention: false, sliding_attention: true };

/**
 * Reads the window: tokens that a query sees, itself included; undefined when the model has none.
 * @see huggingface/transformers masking_utils.py: a key is seen when its position is above the query's minus the window
 */
export function readWindow(model: ModelFields): number | undefined {
  if (fieldOf(model, 'sliding_window') === undefined) return undefined;
  return readCount(model, 'sliding_window', { min: 1, unit: 'tokens' });
}

/**
 * Reads a model that is attention in every layer, some of it with a window: the layers that `layer_types` names where it is
 * given, else those of the family's rule. Notes a window that a layer needs and the config lacks.
 *
 * @param rows what one token adds to each layer
 * @param rule whether a layer has a window; not asked where `layer_types` is given
 */
export function readAttentionStack(
  model: ModelFields,
  numLayers: number,
  rows: readonly TokenRow[],
  rule: (layer: number) => boolean,
): ModelShape {
  const isWindowed = readWindowedLayers(model, numLayers, rule);
  const windowSize = readWindow(model);
  const first = isWindowed.indexOf(true);
  if (first >= 0 && windowSize === undefined) {
    const message = `is missing; layer ${first} has a window. Expected a whole number of tokens, at least 1.`;
    model.faults.note('config-missing', pathOf(model, 'sliding_window'), model.fields.sliding_window, message);
  }
  const parts = isWindowed.map((windowed, modelLayer) => {
    const part = fullAttentionPart(modelLayer, rows);
    return windowed ? { ...part, windowSize } : part;
  });
  return { numModelLayers: numLayers, parts, notes: [] };
}

/** The rule of models that have the same attention in every layer: a window where the config has one. */
export function hasWindow(model: ModelFields): () => boolean {
  return () => fieldOf(model, 'sliding_window') !== undefined;
}

function readWindowedLayers(model: ModelFields, numLayers: number, rule: (layer: number) => boolean): readonly boolean[] {
  if (fieldOf(model, 'layer_types') !== undefined) return readLayerKinds(model, 'layer_types', numLayers, IS_WINDOWED);
  return Array.from({ length: numLayers }, (_, layer) => rule(layer));
}
